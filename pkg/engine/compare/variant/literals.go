package variant

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-openapi/jsonpointer"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// literals are the names and values in policies.
type literals struct {
	words map[string]bool  // names of fields, and all strings that may be names
	near  map[string][]any // the values after a name, in policy order
	// the map keys after a name; keys of labels and annotations are under labels
	below map[string][]string
	// ofKeys reports that the strings being read are compared with label keys.
	ofKeys bool
}

// Bounds of literals.
const (
	maxNear  = 12
	maxBelow = 40
	maxText  = 1 << 20 // bytes of one string
	window   = 8       // tokens after a name whose values belong to it
)

// labels stands for labels, annotations and similar fields.
const labels = "labels"

func newLiterals(policies []*unstructured.Unstructured) *literals {
	l := &literals{words: map[string]bool{}, near: map[string][]any{}, below: map[string][]string{}}
	for _, p := range policies {
		l.value("", p.Object["spec"])
	}
	return l
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// anchor matches the anchors of Kyverno's patterns.
var anchor = regexp.MustCompile(`^[+=^<X]?\((.*)\)$`)

func isLabels(name string) bool {
	return slices.Contains([]string{labels, "annotations", "matchLabels", "nodeSelector"}, name)
}

// value adds a value under a name, with everything below it.
func (l *literals) value(name string, value any) {
	switch value := value.(type) {
	case map[string]any:
		l.fields(name, value)
	case []any:
		for _, item := range value {
			l.value(name, item)
		}
	case string:
		l.addString(name, value)
	default:
		l.add(name, value)
	}
}

// keysOf matches an expression for label keys.
var keysOf = regexp.MustCompile(`\b(keys|items)\(.*\b(labels|annotations|nodeSelector)\b`)

func (l *literals) fields(name string, fields map[string]any) {
	if list, ok := fields["list"].(string); ok {
		outer := l.ofKeys
		l.ofKeys = keysOf.MatchString(list)
		defer func() { l.ofKeys = outer }()
	}
	if pointer, ok := fields["path"].(string); ok {
		l.value(l.pointer(pointer), fields["value"])
	}
	if key, ok := fields["key"].(string); ok && fields["operator"] != nil {
		if _, of := fields["values"]; of || !strings.Contains(key, "{{") && validation.IsQualifiedName(key) == nil {
			l.key(labels, key)
			l.value(key, fields["values"])
		}
		l.condition(key, fields["value"])
	}
	for _, key := range sortedKeys(fields) {
		field := key
		if m := anchor.FindStringSubmatch(key); m != nil {
			field = m[1]
		}
		for _, one := range l.key(name, field) {
			l.value(one, fields[key])
		}
	}
}

// condition adds the value of a precondition under the names that its key reads.
func (l *literals) condition(key string, value any) {
	if text, ok := value.(string); ok && strings.Contains(text, "{{") && !strings.Contains(key, "{{") {
		key, value = text, key
	}
	key, _, _ = strings.Cut(key, "|") // a default
	name, of := "", ""
	for _, t := range token.FindAllString(key, -1) {
		text, quoted := literalOf(t).(string)
		switch {
		case isLabels(t):
			of = labels
		case t == "keys" && of != "":
			list, isList := value.([]any)
			if !isList {
				list = []any{value}
			}
			for _, item := range list {
				if text, ok := item.(string); ok {
					l.key(labels, text)
				}
			}
			return
		case quoted && t[0] == '"':
			name = text
		case isName(t):
			name = t
		}
	}
	if of != "" {
		l.key(labels, name)
	}
	l.value(name, value)
}

func (l *literals) add(name string, value any) {
	switch value.(type) {
	case string, bool, int64, float64:
		if known := l.near[name]; len(known) < maxNear && !slices.Contains(known, value) {
			l.near[name] = append(known, value)
		}
	}
}

// key adds a map key under a name, and returns it; for a label pattern, a matching key and some near misses.
func (l *literals) key(name, key string) []string {
	l.words[key] = true
	plain := wildcards.Replace(key)
	if !isLabels(name) {
		if plain == key && !strings.ContainsAny(key, "{}") {
			l.follow(name, key)
		}
		return []string{plain}
	}
	keys := []string{plain}
	if plain != key || validation.IsQualifiedName(plain) != nil {
		keys = append(keys, plain+"x", "x"+plain, separated.ReplaceAllString(key, "x"))
	}
	keys = slices.DeleteFunc(keys, func(key string) bool { return validation.IsQualifiedName(key) != nil })
	for _, one := range keys {
		l.follow(labels, one)
	}
	return keys
}

func (l *literals) follow(name, key string) {
	if known := l.below[name]; key != "" && len(known) < maxBelow && !slices.Contains(known, key) {
		l.below[name] = append(known, key)
	}
}

// pointer adds the names in a JSON pointer, and returns the last one.
func (l *literals) pointer(text string) string {
	if !strings.HasPrefix(text, "/") {
		return ""
	}
	last := ""
	for segment := range strings.SplitSeq(text[1:], "/") {
		segment = jsonpointer.Unescape(segment)
		if _, err := strconv.Atoi(segment); err != nil && segment != "-" && segment != "" &&
			!strings.ContainsAny(segment, "{}") {
			l.key(last, segment)
			last = segment
		}
	}
	return last
}

// addString adds a string under a name: a value, a patch in YAML, or an expression.
func (l *literals) addString(name, text string) {
	if len(text) > maxText {
		return
	}
	if strings.Contains(text, "\n") {
		var inner any
		if err := yaml.Unmarshal([]byte(text), &inner); err == nil {
			switch inner.(type) {
			case []any, map[string]any:
				l.value(name, inner)
				return
			}
		}
	}
	computed := strings.Contains(text, "{{")
	if l.ofKeys && !computed {
		l.key(labels, text)
	}
	switch {
	case computed:
		l.add(name, minimalName) // probably a name
	case !strings.ContainsAny(text, "\n{}()") && len(text) < 200:
		l.add(name, text)
	}
	if name == "kinds" {
		l.words[text[strings.LastIndex(text, "/")+1:]] = true
	}
	l.pointer(text)
	l.expression(token.FindAllString(defaults.ReplaceAllString(text, ""), -1), func(literal any) {
		if text, ok := literal.(string); ok && l.ofKeys && computed {
			l.key(labels, text)
		}
		if computed { // the written value probably contains the previous one
			l.add(name, literal)
		}
	})
}

// defaults matches default values between a field and its comparison.
var defaults = regexp.MustCompile(`\.orValue\(("[^"]*"|'[^']*'|[\w.]+|\[\]|\{\})\)`)

// token matches a token of an expression: a quoted string, a name, a number, or a single character.
var token = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|` + "`[^`]*`" + `|[A-Za-z_][A-Za-z0-9_]*|\d+(?:\.\d+)?|[=!<>]=|\S`)

// expression adds the names in an expression, each with the values and names after it, and calls do for its
// strings.
func (l *literals) expression(tokens []string, do func(any)) {
	for i, t := range tokens {
		rest := tokens[i+1 : min(len(tokens), i+1+window)]
		name := t
		if text, ok := literalOf(t).(string); ok {
			do(text)
			if name = text; strings.HasPrefix(text, "/") {
				name = l.pointer(text)
			}
			if len(rest) > 0 && (rest[0] == ":" || rest[0] == "in" && slices.ContainsFunc(rest, isLabels)) {
				l.key(labels, text)
			}
		} else if !isName(t) {
			continue
		}
		l.words[name] = true
		for _, value := range rest {
			l.add(name, literalOf(value))
		}
		l.keysBehind(name, rest)
	}
}

// keysBehind adds the key that follows a name: .key, .?key, ["key"] or [?"key"]; label keys may follow later.
func (l *literals) keysBehind(name string, rest []string) {
	for i, t := range rest {
		text, quoted := literalOf(t).(string)
		switch {
		case quoted, i > 0 && isName(t) && rest[i-1] != "(" && (i+1 == len(rest) || rest[i+1] != "("):
			if !quoted {
				text = t
			}
			l.key(name, text)
			return
		case !isLabels(name) && !slices.Contains([]string{".", "[", "?"}, t):
			return
		}
	}
}

func isName(t string) bool {
	return t[0] == '_' || 'a' <= t[0] && t[0] <= 'z' || 'A' <= t[0] && t[0] <= 'Z'
}

// literalOf returns the value of a literal token, or nil.
func literalOf(t string) any {
	switch {
	case t == "true", t == "false":
		return t == "true"
	case len(t) > 1 && strings.Contains("\"'`", t[:1]):
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
