package variant

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// which says to which elements of a list a mutation is applied.
type which int

const (
	first which = iota
	last
	all
)

// mutation is one difference between an object and its variant.
type mutation struct {
	site  *site
	which which
	value any  // nil removes the field
	more  bool // adds an element to a list
	rank  int  // the lowest come first
}

// apply changes a copy of an object, and reports whether it did.
func (m *mutation) apply(object map[string]any) bool {
	changed := false
	m.walk(object, 0, func(parent map[string]any, name string) {
		now, there := parent[name]
		switch {
		case m.more:
			list, _ := now.([]any)
			parent[name] = append(slices.Clone(list), another(list, m.value, len(list)))
		case m.value == nil && !there:
			return
		case m.value == nil:
			delete(parent, name)
		case there && shapeOf(now) != shapeOf(m.value): // where no schema says it, the object does
			return
		default:
			parent[name] = runtime.DeepCopyJSONValue(m.value)
		}
		changed = true
	})
	return changed
}

// shapeOf tells maps, lists and all others apart.
func shapeOf(value any) string {
	switch value.(type) {
	case map[string]any:
		return "map"
	case []any:
		return "list"
	}
	return ""
}

// another is an element that is like the ones of a list, and has another name.
func another(list []any, minimal any, n int) any {
	out := runtime.DeepCopyJSONValue(minimal)
	if fields, ok := out.(map[string]any); ok {
		if name, ok := fields["name"].(string); ok {
			for _, item := range list {
				if known, _ := item.(map[string]any); known != nil && known["name"] == name {
					fields["name"] = fmt.Sprintf("%s-%d", name, n+1)
				}
			}
		}
	}
	return out
}

// walk calls do for each map that has, or is to have, the field. It creates what is on the way, unless the field
// is to be removed.
func (m *mutation) walk(object map[string]any, at int, do func(map[string]any, string)) {
	name := m.site.path[at]
	if at == len(m.site.path)-1 {
		do(object, name)
		return
	}
	if m.site.path[at+1] != element {
		below, ok := object[name].(map[string]any)
		if !ok {
			if m.value == nil || object[name] != nil {
				return
			}
			below = map[string]any{}
			object[name] = below
		}
		m.walk(below, at+1, do)
		return
	}
	if at+2 >= len(m.site.path) || m.site.path[at+2] == element {
		return
	}
	list, _ := object[name].([]any)
	if len(list) == 0 {
		if m.value == nil {
			return
		}
		list = []any{minimalElement(m.site.path[:at+1], m.site.atoms[at+2], 0)}
		object[name] = list
	}
	for i, item := range list {
		fields, ok := item.(map[string]any)
		if !ok || m.which == first && i > 0 || m.which == last && i < len(list)-1 {
			continue
		}
		m.walk(fields, at+2, do)
	}
}

// samples are elements of well-known lists that a server takes.
var samples = map[string]map[string]any{ //nolint:gochecknoglobals // an immutable table
	"containers":          {"name": "c", "image": "nginx:1"},
	"initContainers":      {"name": "i", "image": "busybox:1"},
	"ephemeralContainers": {"name": "e", "image": "busybox:1"},
	"volumes":             {"name": "v", "emptyDir": map[string]any{}},
	"volumeMounts":        {"name": "v", "mountPath": "/v"},
	"env":                 {"name": "E", "value": "v"},
	"envFrom":             {"configMapRef": map[string]any{"name": "x"}},
	"ports":               {"containerPort": int64(80)},
	"tolerations":         {"key": "k", "operator": "Exists"},
	"hostAliases":         {"ip": "192.0.2.1"},
	"ownerReferences":     {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "00000000-0000-0000-0000-000000000000"},
}

// servicePorts leads to the ports of a Service, which are no ports of a container.
var servicePorts = []string{"spec", "ports"} //nolint:gochecknoglobals // immutable

// minimalElement is an element of a list that has no more than it needs.
func minimalElement(list []string, atom schema.Atom, n int) any {
	if slices.Equal(list, servicePorts) {
		return map[string]any{"port": int64(80)} //nolint:mnd // any will do
	}
	if sample, ok := samples[list[len(list)-1]]; ok {
		return runtime.DeepCopyJSONValue(sample)
	}
	if atom.Map == nil && atom.Scalar != nil {
		return scalars(atom)[0]
	}
	out := map[string]any{}
	if atom.Map == nil {
		return out
	}
	for _, key := range []string{"name", "key"} {
		if _, ok := atom.Map.FindField(key); ok {
			out[key] = fmt.Sprint("x", n)
			break
		}
	}
	return out
}

// scalars are values of a type that are like no other.
func scalars(atom schema.Atom) []any {
	if atom.Scalar == nil || atom.Map != nil || atom.List != nil {
		return []any{"other"}
	}
	switch *atom.Scalar {
	case schema.Boolean:
		return []any{true, false}
	case schema.Numeric:
		return []any{int64(0), int64(1), int64(5)}
	}
	return []any{"other"}
}

// mutations are the differences at a field that matter.
func (v *vocabulary) mutations(s *site) []mutation {
	name := s.name()
	var out, elsewhere []mutation // of the first element of a list, and of others
	add := func(value any, more bool) {
		out = append(out, mutation{site: s, value: value, more: more})
		if slices.Contains(s.path[:len(s.path)-1], element) {
			elsewhere = append(elsewhere, mutation{site: s, value: value, more: more, which: all}, mutation{site: s, value: value, more: more, which: last})
		}
	}
	required := len(s.path) == 1 || name == "containers" || name == "metadata" || name == "spec" || name == "template" || name == "jobTemplate" || name == "selector"
	if !required {
		add(nil, false)
	}
	switch {
	case slices.Contains(s.path, "labels") && name != "labels", slices.Contains(s.path, "annotations") && name != "annotations":
		return out
	case isLabels(name) && name != "matchLabels":
		add(map[string]any{}, false)
		out = append(out, v.labelMutations(s)...)
	case s.atom.List != nil && (s.atom.Map == nil):
		v.listMutations(s, name, required, add)
	case s.atom.Map != nil && s.atom.Scalar == nil:
		if !required {
			add(map[string]any{}, false)
			if other := v.otherField(s); other != nil {
				add(other, false)
			}
		}
		v.entriesOf(s, &out)
	default:
		for _, value := range v.values(name, s.atom, s) {
			add(value, false)
		}
	}
	return append(out, elsewhere...)
}

// otherKey is a key of labels, or of data, that no policy names.
const otherKey = "other"

// resources are those of containers that quantities are of.
var resources = []string{"memory", "cpu", "ephemeral-storage"} //nolint:gochecknoglobals // immutable

// entriesOf are the mutations of a map whose keys are no fields, such as data: those of the keys that policies name.
func (v *vocabulary) entriesOf(s *site, out *[]mutation) {
	if len(s.atom.Map.Fields) > 0 || isLabels(s.name()) || s.entry.Scalar == nil {
		return
	}
	for _, key := range v.below[s.name()] {
		entry := s.below(key)
		values := v.values(key, s.entry, s)
		if v.words["base64_decode"] || v.words["base64"] {
			values = append(base64Of(values), values...)
		}
		if !s.quantity {
			values = append(values, "")
		}
		for _, value := range append([]any{nil}, values...) {
			*out = append(*out, mutation{site: entry, value: value})
			if slices.Contains(s.path, element) {
				*out = append(*out, mutation{site: entry, value: value, which: last})
			}
		}
	}
	if named := v.below[s.name()]; len(named) > 0 && s.quantity {
		resource := slices.IndexFunc(resources, func(name string) bool { return !slices.Contains(named, name) })
		if resource >= 0 {
			*out = append(*out, mutation{site: s.below(resources[resource]), value: "1"})
		}
	} else if len(named) > 0 {
		*out = append(*out, mutation{site: s.below(otherKey), value: "other"})
	}
}

// base64Of are the texts among values, as Secrets have them.
func base64Of(values []any) []any {
	var out []any
	for _, value := range values {
		if text, ok := value.(string); ok {
			out = append(out, base64.StdEncoding.EncodeToString([]byte(text)))
		}
	}
	return out
}

// below is the site of an entry of a map.
func (s *site) below(key string) *site {
	return &site{path: append(slices.Clone(s.path), key), atoms: append(slices.Clone(s.atoms), schema.Atom{})}
}

// labelMutations are those of a map of labels, or the like: of each key that policies name, and of one that none names. Keys
// that may be no labels come last.
func (v *vocabulary) labelMutations(s *site) []mutation {
	lists := [][]mutation{{{site: s.below(otherKey), value: "other"}}}
	var perhaps [][]mutation
	for _, key := range v.keys {
		entry := s.below(key)
		var list []mutation
		for _, value := range v.labelValues(key) {
			list = append(list, mutation{site: entry, value: value})
		}
		list = append(list, mutation{site: entry})
		if v.perhaps[key] {
			perhaps = append(perhaps, list)
		} else {
			lists = append(lists, list)
		}
	}
	return append(inTurn(lists), inTurn(perhaps)...)
}

// labelValues are the values of a key of labels: those that policies name, others, and those that are almost the same.
func (v *vocabulary) labelValues(key string) []string {
	var out []string
	for _, value := range v.labels[key] {
		out = append(out, texts(value)...)
	}
	out = append(append(out, "other", ""), v.long()...)
	for _, value := range v.labels[key] {
		out = append(append(out, alike(value)...), compared(value)...)
	}
	return engine.Distinct(out)
}

// long is a text longer than one that policies cut off; none where they cut off none.
func (v *vocabulary) long() []string {
	if !v.words["truncate"] && !v.words["substring"] {
		return nil
	}
	return []string{strings.Repeat("long", 15)} // each part of which may be a label
}

// otherField is a struct with a field that no policy names; nil where there is none that is simple.
func (v *vocabulary) otherField(s *site) map[string]any {
	for _, f := range sortedFields(s.atom.Map) {
		if scalar := f.Type.Inlined.Scalar; scalar != nil && !v.words[f.Name] && (*scalar == schema.Boolean || *scalar == schema.Numeric) {
			return map[string]any{f.Name: scalars(schema.Atom{Scalar: scalar})[0]}
		}
	}
	return nil
}

// listMutations are those of a list: empty, and with one more element.
func (v *vocabulary) listMutations(s *site, name string, required bool, add func(any, bool)) {
	if !required {
		add([]any{}, false)
	}
	item := minimalElement(s.path, schema.Atom{}, 0)
	scalar := false
	if s.atom.List.ElementType.Inlined.Scalar != nil || s.atom.List.ElementType.NamedType == nil && s.atom.List.ElementType.Inlined.Map == nil {
		scalar = true
	}
	if !scalar || samples[name] != nil {
		if fields, ok := item.(map[string]any); ok && len(fields) == 0 {
			fields["name"] = "x"
		}
		add(item, true)
	}
	for _, value := range v.near[name] {
		text, ok := value.(string)
		if !ok {
			continue
		}
		if scalar {
			add(text, true)
			continue
		}
		named, _ := minimalElement(s.path, schema.Atom{}, 0).(map[string]any)
		named["name"] = text
		add(named, true)
	}
	if scalar {
		add("other", true)
		return
	}
	if named, _ := item.(map[string]any); named["name"] != nil && samples[name] != nil {
		var names []string
		for _, value := range v.near["name"] {
			text, _ := value.(string)
			names = append(names, slices.DeleteFunc(texts(text), func(text string) bool { return !isElementName(name, text) })...)
		}
		names = engine.Distinct(names)
		for _, text := range names[:min(len(names), maxNamed)] {
			named, _ := minimalElement(s.path, schema.Atom{}, 0).(map[string]any)
			named["name"] = text
			add(named, true)
			if len(named) > 1 && name == "env" {
				add(map[string]any{"name": text}, true) // a rule may give it what no other value stands beside
			}
		}
	}
}

// isElementName reports whether an element of a list may have a name: that of a variable, or one like those of objects.
func isElementName(list, name string) bool {
	if list == "env" {
		return len(validation.IsEnvVarName(name)) == 0
	}
	return len(validation.IsDNS1123Label(name)) == 0
}

// maxNamed bounds the names that elements of one list get.
const maxNamed = 4

// namesOf are the texts of a value that may be names.
func namesOf(value any) []string {
	text, _ := value.(string)
	return slices.DeleteFunc(texts(text), func(name string) bool { return len(validation.IsDNS1123Subdomain(name)) > 0 })
}

// values are those of a scalar field that stand near its name, those that are almost the same, and another one.
func (v *vocabulary) values(name string, atom schema.Atom, s *site) []any {
	var out []any
	add := func(value any) {
		if fits(value, atom) && !slices.ContainsFunc(out, func(known any) bool { return known == value }) {
			out = append(out, value)
		}
	}
	if s.quantity {
		for _, value := range append(slices.Clone(v.near[name]), "1") {
			text := fmt.Sprint(value)
			if more := amounts(text); more != nil {
				add(text)
				for _, amount := range more {
					add(amount)
				}
			}
		}
		return out
	}
	if name == "creationTimestamp" {
		add("2024-01-01T00:00:00Z")
		return out
	}
	if name == "image" {
		for _, image := range v.images() {
			add(image)
		}
	}
	for _, value := range v.near[name] {
		add(value)
		switch value := value.(type) {
		case string:
			for _, text := range texts(value) {
				add(text)
			}
		case int64:
			add(value + 1)
			add(value - 1)
		}
	}
	for _, value := range s.allowed {
		add(value)
	}
	if name == "protocol" {
		add("UDP")
	}
	for _, value := range scalars(atom) {
		add(value)
	}
	for _, value := range v.near[name] {
		if text, ok := value.(string); ok && s.allowed == nil {
			for _, almost := range alike(text) {
				add(almost)
			}
		}
	}
	return out
}

// imageText matches what may be the name of an image.
var imageText = regexp.MustCompile(`^[a-z0-9][-\w./:@]*$`)

// images are those that policies name, and such as there are, in turn.
func (v *vocabulary) images() []string {
	var own, named []string
	for _, value := range v.near["image"] {
		pattern, _ := value.(string)
		for _, text := range texts(pattern) {
			own = append(own, imagesOf(text)...)
			named = append(named, text+":1")
		}
	}
	isNone := func(image string) bool { return !imageText.MatchString(image) }
	own, named = slices.DeleteFunc(own, isNone), slices.DeleteFunc(named, isNone)
	return append(inTurn([][]string{own, {
		"nginx:latest", "nginx", "ghcr.io/team/app@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "team/app:1",
		"registry.example.com:5000/team/app:1", "registry.example.com/team/app:1", "docker.io/nginx:1", "nginx:1.25", "registry.example.com:5000/team/app",
	}}), named...)
}

// imagesOf are images that begin, or end, with a text of a policy.
func imagesOf(text string) []string {
	switch {
	case strings.HasPrefix(text, ":"):
		return []string{"nginx" + text}
	case strings.HasPrefix(text, "x:"):
		return []string{"nginx" + text[1:], "nginx" + text[1:] + "x", "nginx:" + "x" + text[2:]}
	case strings.HasSuffix(text, "/"):
		return []string{text + "app:1", text + "app", text + "team/app:latest"}
	case strings.ContainsAny(text, "./") && !strings.ContainsAny(text, " ()[]"):
		return []string{text + "/app:1", text + "/app", "other/" + text + "/app:1"}
	}
	return nil
}

// fits reports whether a value may be one of a type.
func fits(value any, atom schema.Atom) bool {
	if atom.Scalar == nil || atom.Map != nil || atom.List != nil {
		return true
	}
	switch value.(type) {
	case string:
		return *atom.Scalar == schema.String || *atom.Scalar == schema.Scalar("untyped")
	case bool:
		return *atom.Scalar == schema.Boolean || *atom.Scalar == schema.Scalar("untyped")
	case int64:
		return *atom.Scalar == schema.Numeric || *atom.Scalar == schema.Scalar("untyped")
	}
	return false
}
