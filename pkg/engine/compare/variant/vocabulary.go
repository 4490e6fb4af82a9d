package variant

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-openapi/jsonpointer"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// vocabulary is what stands in the texts of policies.
type vocabulary struct {
	words  map[string]bool     // names of fields
	near   map[string][]any    // values that stand near a name, in the order of the texts
	labels map[string][]string // values of labels and annotations, by key
	keys   []string            // the keys of labels, in order
	// perhaps has those that may be the names of fields as well.
	perhaps map[string]bool
	kinds   map[string]bool     // kinds that the policies tell apart
	aliases map[string]bool     // variables that have labels
	below   map[string][]string // names that stand below a name, in the order of the texts
	// pointers are paths that stand there whole, with "[]" for an element.
	pointers [][]string
}

// The bounds of a vocabulary.
const (
	maxNear    = 12
	maxLabels  = 40
	maxPointer = 200
	maxText    = 1 << 20 // bytes of one text
	window     = 8       // tokens in which a value is near a name
)

func newVocabulary(policies []*unstructured.Unstructured) *vocabulary {
	v := &vocabulary{words: map[string]bool{}, near: map[string][]any{}, labels: map[string][]string{}, perhaps: map[string]bool{}, kinds: map[string]bool{}, aliases: map[string]bool{}, below: map[string][]string{}}
	for _, p := range policies {
		v.value("", p.Object["spec"])
	}
	return v
}

// anchor matches the anchors of Kyverno's patterns.
var anchor = regexp.MustCompile(`^[+=^<X]?\((.*)\)$`)

// fieldName is the name of a field in a pattern.
func fieldName(key string) string {
	if m := anchor.FindStringSubmatch(key); m != nil {
		return m[1]
	}
	return key
}

// isLabels reports whether the entries of a field are labels, or like them.
func isLabels(name string) bool {
	return slices.Contains([]string{"labels", "annotations", "matchLabels", "nodeSelector"}, name)
}

// isLabels reports whether the entries of a field, or of a variable of the policies, are labels.
func (v *vocabulary) isLabels(name string) bool { return isLabels(name) || v.aliases[name] }

// alias notices a variable that has labels of an object.
func (v *vocabulary) alias(entry map[string]any) {
	name, _ := entry["name"].(string)
	for _, source := range []string{"apiCall", "variable"} {
		from, _ := entry[source].(map[string]any)
		path, _ := from["jmesPath"].(string)
		if of := path[strings.LastIndex(path, ".")+1:]; isLabels(of) {
			v.aliases[name] = true
		}
	}
}

// value adds a value of a policy that stands under a name.
func (v *vocabulary) value(name string, value any) {
	switch value := value.(type) {
	case map[string]any:
		v.entries(name, value)
	case []any:
		for _, item := range value {
			v.value(name, item)
		}
	case string:
		v.text(name, value)
	case nil:
	default:
		v.add(name, value)
	}
}

// element stands for the elements of a list in a path.
const element = "[]"

func (v *vocabulary) entries(name string, fields map[string]any) {
	if pointer, ok := fields["path"].(string); ok {
		if at := v.pointer(pointer); at != "" {
			v.value(at, fields["value"])
		}
	}
	v.alias(fields)
	if list, ok := fields["list"].(string); ok {
		v.elements(list, fields["preconditions"])
	}
	if key, ok := fields["key"].(string); ok && validation.IsQualifiedName(key) == nil {
		v.label(key)
		values, _ := fields["values"].([]any)
		for _, text := range values {
			v.label(key, text)
		}
	}
	if key, ok := fields["key"].(string); ok && fields["operator"] != nil {
		if value, ok := fields["value"].(string); ok && strings.Contains(value, "{{") && !strings.Contains(key, "{{") {
			v.condition(value, key) // what it reads stands on the other side
		} else {
			v.condition(key, fields["value"])
		}
	}
	for _, key := range sortedKeys(fields) {
		field := fieldName(key)
		v.words[field] = true
		v.child(name, field)
		if v.isLabels(name) {
			v.label(field, fields[key])
		}
		v.value(field, fields[key])
	}
}

// ofKeys matches a list of the keys of a map.
var ofKeys = regexp.MustCompile(`\b(keys|items)\(`)

// elements adds the keys of labels that conditions on the elements of a list ask for.
func (v *vocabulary) elements(list string, conditions any) {
	if !ofKeys.MatchString(list) || !slices.ContainsFunc(token.FindAllString(list, -1), v.isLabels) {
		return
	}
	eachText(conditions, func(text string) {
		if !strings.Contains(text, "{{") {
			v.labelLike(text)
			return
		}
		for _, t := range token.FindAllString(text, -1) {
			if literal, ok := literalOf(t).(string); ok && t[0] != '"' {
				v.labelLike(literal)
			}
		}
	})
}

// eachText calls do for each text in a value, in order.
func eachText(value any, do func(string)) {
	switch value := value.(type) {
	case string:
		do(value)
	case []any:
		for _, below := range value {
			eachText(below, do)
		}
	case map[string]any:
		for _, key := range sortedKeys(value) {
			if key != "operator" {
				eachText(value[key], do)
			}
		}
	}
}

// labelLike adds a key of labels that is a text of a policy, or that begins or ends with it.
func (v *vocabulary) labelLike(text string) {
	for _, one := range texts(text) {
		for _, key := range []string{one, one + "x", "x" + one} {
			if validation.IsQualifiedName(key) == nil {
				v.label(key)
				break
			}
		}
	}
}

// condition adds the values that a precondition compares with what its key reads, before those that it reads else.
func (v *vocabulary) condition(key string, value any) {
	name, labelled, keys := "", false, false
	for _, t := range token.FindAllString(key, -1) {
		if t == "|" {
			break
		}
		labelled, keys = labelled || v.isLabels(t), keys || t == "keys"
		if literal, ok := literalOf(t).(string); ok && t[0] == '"' {
			name = literal
		} else if isName(t) {
			name = t
		}
	}
	values, ok := value.([]any)
	if !ok {
		values = []any{value}
	}
	for _, one := range values {
		text, _ := one.(string)
		switch {
		case strings.Contains(text, "{{"):
		case labelled && keys:
			v.label(text)
		default:
			v.add(name, one)
			if labelled {
				v.label(name, one)
			}
		}
	}
}

// add adds a value that stands near a name.
func (v *vocabulary) add(name string, value any) {
	if value == nil || len(v.near[name]) >= maxNear || slices.ContainsFunc(v.near[name], func(known any) bool { return known == value }) {
		return
	}
	switch value.(type) {
	case string, bool, int64, float64:
		v.near[name] = append(v.near[name], value)
	}
}

// child adds a name that stands below another.
func (v *vocabulary) child(name, below string) {
	if below == "" || strings.ContainsAny(below, "{}*?") || len(v.below[name]) >= maxNear || slices.Contains(v.below[name], below) {
		return
	}
	v.below[name] = append(v.below[name], below)
}

// label adds a key of labels, and values; of a pattern of keys one that matches, and some that almost do.
func (v *vocabulary) label(pattern string, values ...any) {
	key := wildcards.Replace(pattern)
	if key != pattern {
		defer v.label(key+"x", values...)
		defer v.label("x"+key, values...)
	}
	if validation.IsQualifiedName(key) != nil {
		return
	}
	v.perhaps[key] = false
	if _, known := v.labels[key]; !known {
		if len(v.keys) == maxLabels {
			return
		}
		v.keys = append(v.keys, key)
		v.labels[key] = nil
	}
	for _, value := range values {
		text, ok := value.(string)
		switch value := value.(type) {
		case int64, float64: // which is compared with a label, whose values are texts
			text, ok = fmt.Sprint(value), true
		}
		if ok && len(v.labels[key]) < maxNear && !slices.Contains(v.labels[key], text) {
			v.labels[key] = append(v.labels[key], text)
		}
	}
}

// pointer adds a JSON pointer, and returns the name that it ends with.
func (v *vocabulary) pointer(text string) string {
	if !strings.HasPrefix(text, "/") || len(v.pointers) > maxPointer {
		return ""
	}
	last := ""
	var way []string
	for _, segment := range strings.Split(text[1:], "/") {
		segment = jsonpointer.Unescape(segment)
		if _, err := strconv.Atoi(segment); err == nil || segment == "-" || strings.ContainsAny(segment, "{}") || segment == "" {
			way = append(way, element)
			continue
		}
		v.words[segment] = true
		v.child(last, segment)
		if v.isLabels(last) {
			v.label(segment)
		}
		last = segment
		way = append(way, segment)
	}
	v.pointers = append(v.pointers, way)
	return last
}

// token matches what expressions are made of: quoted texts, names, numbers, and single characters.
var token = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|` + "`[^`]*`" + `|[A-Za-z_][A-Za-z0-9_]*|\d+(?:\.\d+)?|[=!<>]=|\S`)

// text adds a text that stands under a name: a value, a patch in YAML, or an expression.
func (v *vocabulary) text(name, text string) {
	if len(text) > maxText {
		return
	}
	if strings.Contains(text, "\n") {
		var inner any
		if err := yaml.Unmarshal([]byte(text), &inner); err == nil {
			switch inner := inner.(type) {
			case []any, map[string]any:
				v.value(name, inner)
				return
			}
		}
	}
	switch {
	case strings.Contains(text, "{{"):
		v.add(name, minimalName) // it is computed, probably of a name
	case !strings.ContainsAny(text, "\n{}()") && len(text) < 200:
		v.add(name, text)
	}
	if kind := text[strings.LastIndex(text, "/")+1:]; name == "kinds" {
		v.kinds[kind] = true
	}
	v.pointer(text)
	tokens := token.FindAllString(text, -1)
	for i, t := range tokens {
		if isName(t) {
			v.name(tokens, i)
		} else if literal, ok := literalOf(t).(string); ok {
			rest := tokens[i+1:]
			if kindName.MatchString(literal) {
				v.kinds[literal] = true
			}
			if strings.Contains(text, "{{") { // what is written is probably made of what was there
				v.add(name, literal)
			}
			if at := v.pointer(literal); at != "" {
				v.nearby(at, rest)
			}
			if len(rest) > 0 && rest[0] == "in" && slices.ContainsFunc(rest[:min(len(rest), window)], v.isLabels) {
				v.label(literal)
			}
			if len(rest) > 0 && rest[0] == ":" { // a key of a map
				v.words[literal] = true
				_, sure := v.labels[literal]
				sure = sure && !v.perhaps[literal]
				v.label(literal)
				v.nearby(literal, rest)
				v.labelNearby(literal, rest)
				v.perhaps[literal] = !sure
			}
		}
	}
}

// name adds a name of an expression, and what stands near it.
func (v *vocabulary) name(tokens []string, i int) {
	name, rest := tokens[i], tokens[i+1:]
	v.words[name] = true
	v.nearby(name, rest)
	v.child(name, keyBehind(rest))
	if !v.isLabels(name) {
		return
	}
	for j := 0; j < min(len(rest), window); j++ {
		key, ok := literalOf(rest[j]).(string)
		if !ok && isName(rest[j]) && j > 0 && rest[j-1] == "." {
			key = rest[j]
		}
		if key != "" && validation.IsQualifiedName(key) == nil {
			v.label(key)
			v.labelNearby(key, rest[j+1:])
			return
		}
	}
}

// keyBehind is the key by which tokens go on from a name: .key, .?key, ["key"] or [?"key"].
func keyBehind(rest []string) string {
	if len(rest) == 0 || rest[0] != "." && rest[0] != "[" {
		return ""
	}
	rest = rest[1:]
	if len(rest) > 0 && rest[0] == "?" {
		rest = rest[1:]
	}
	switch {
	case len(rest) == 0:
	case isName(rest[0]) && (len(rest) == 1 || rest[1] != "("):
		return rest[0]
	default:
		text, _ := literalOf(rest[0]).(string)
		return text
	}
	return ""
}

// near are the first tokens of those that follow a name. The default of what may not be there does not count: it stands between a
// field and what that is compared with.
func near(rest []string) []string {
	count := 0
	for i := 0; i < len(rest); i++ {
		if i+4 < len(rest) && slices.Equal(rest[i:i+3], []string{".", "orValue", "("}) && rest[i+4] == ")" {
			i += 4
			continue
		}
		if count++; count == window {
			return rest[:i+1]
		}
	}
	return rest
}

// nearby adds the values that follow a name.
func (v *vocabulary) nearby(name string, rest []string) {
	for _, t := range near(rest) {
		if literal := literalOf(t); literal != nil {
			v.add(name, literal)
		}
	}
}

func (v *vocabulary) labelNearby(key string, rest []string) {
	for _, t := range near(rest) {
		if text, ok := literalOf(t).(string); ok && text != key {
			v.label(key, text)
		}
	}
}

// kindName matches what may be the kind of an object.
var kindName = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*$`)

func isName(t string) bool {
	return t[0] == '_' || 'a' <= t[0] && t[0] <= 'z' || 'A' <= t[0] && t[0] <= 'Z'
}

// literalOf returns the value of a token; nil for one that is none.
func literalOf(t string) any {
	switch {
	case t == "true", t == "false":
		return t == "true"
	case len(t) > 1 && (t[0] == '"' || t[0] == '\'' || t[0] == '`'):
		inner := t[1 : len(t)-1]
		if t[0] == '`' { // a JMESPath literal holds JSON
			var value any
			if err := yaml.Unmarshal([]byte(inner), &value); err == nil {
				return value
			}
		}
		return strings.ReplaceAll(inner, `\`+t[:1], t[:1])
	case '0' <= t[0] && t[0] <= '9':
		if n, err := strconv.ParseInt(t, 10, 64); err == nil {
			return n
		}
	}
	return nil
}
