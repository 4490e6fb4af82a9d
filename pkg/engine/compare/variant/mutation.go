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
	field *field
	which which
	value any  // nil removes the field
	more  bool // adds an element to a list
	rank  int  // the lowest come first
}

// apply changes an object, and reports whether it did.
func (m *mutation) apply(object map[string]any) bool {
	changed := false
	m.walk(object, 0, func(parent map[string]any, name string) {
		now, there := parent[name]
		switch {
		case m.more:
			list, _ := now.([]any)
			parent[name] = append(slices.Clone(list), another(list, m.value))
		case m.value != nil:
			parent[name] = runtime.DeepCopyJSONValue(m.value)
		case !there:
			return
		default:
			delete(parent, name)
		}
		changed = true
	})
	return changed
}

// another is an element that a list has not: one with another name.
func another(list []any, item any) any {
	item = runtime.DeepCopyJSONValue(item)
	if fields, ok := item.(map[string]any); ok && fields["name"] != nil {
		for _, known := range list {
			if known, _ := known.(map[string]any); known["name"] == fields["name"] {
				fields["name"] = fmt.Sprintf("%s-%d", fields["name"], len(list)+1)
			}
		}
	}
	return item
}

// walk calls do for each map that has, or is to have, the field. It creates what is on the way, unless the field
// is to be removed.
func (m *mutation) walk(object map[string]any, at int, do func(map[string]any, string)) {
	path := m.field.path
	name := path[at]
	switch {
	case at == len(path)-1:
		do(object, name)
	case path[at+1] != element:
		below, ok := object[name].(map[string]any)
		if !ok {
			if m.value == nil || object[name] != nil {
				return
			}
			below = map[string]any{}
			object[name] = below
		}
		m.walk(below, at+1, do)
	case at+2 < len(path) && path[at+2] != element:
		list, _ := object[name].([]any)
		if len(list) == 0 && m.value != nil {
			list = []any{minimalElement(path[:at+1], m.field.types[at+2])}
			object[name] = list
		}
		for i, item := range list {
			if fields, ok := item.(map[string]any); ok && (m.which == all || m.which == first && i == 0 || m.which == last && i == len(list)-1) {
				m.walk(fields, at+2, do)
			}
		}
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

// minimalElement is an element of a list that has no more than it needs.
func minimalElement(list []string, typ schema.Atom) any {
	if slices.Equal(list, []string{"spec", "ports"}) { // of a Service
		return map[string]any{"port": int64(80)} //nolint:mnd // any will do
	}
	if sample, ok := samples[list[len(list)-1]]; ok {
		return runtime.DeepCopyJSONValue(sample)
	}
	if typ.Map == nil && typ.Scalar != nil {
		return scalars(typ)[0]
	}
	for _, key := range []string{"name", "key"} {
		if typ.Map != nil && slices.ContainsFunc(typ.Map.Fields, func(f schema.StructField) bool { return f.Name == key }) {
			return map[string]any{key: "x0"}
		}
	}
	return map[string]any{}
}

// isScalar reports whether a value of a type is a scalar.
func isScalar(typ schema.Atom) bool { return typ.Scalar != nil && typ.Map == nil && typ.List == nil }

// scalars are values of a type that are like no other.
func scalars(typ schema.Atom) []any {
	switch {
	case isScalar(typ) && *typ.Scalar == schema.Boolean:
		return []any{true, false}
	case isScalar(typ) && *typ.Scalar == schema.Numeric:
		return []any{int64(0), int64(1), int64(5)}
	}
	return []any{"other"}
}

// fits reports whether a value may be one of a type.
func fits(value any, typ schema.Atom) bool {
	if !isScalar(typ) || *typ.Scalar == "untyped" {
		return true
	}
	switch value.(type) {
	case string:
		return *typ.Scalar == schema.String
	case bool:
		return *typ.Scalar == schema.Boolean
	case int64:
		return *typ.Scalar == schema.Numeric
	}
	return false
}

// required are fields that no object goes without.
var required = []string{"containers", "metadata", "spec", "template", "jobTemplate", "selector"} //nolint:gochecknoglobals // an immutable table

// mutations are the differences at a field: it is not there, or empty, or has another value or element.
func (l *literals) mutations(f *field) []mutation {
	var out, elsewhere []mutation // of the first element of a list, and of others
	add := func(f *field, value any, more bool) {
		out = append(out, mutation{field: f, value: value, more: more})
		if slices.Contains(f.path[:len(f.path)-1], element) {
			elsewhere = append(elsewhere, mutation{field: f, value: value, more: more, which: all}, mutation{field: f, value: value, more: more, which: last})
		}
	}
	name, typ := f.name(), f.typ()
	optional := len(f.path) > 1 && !slices.Contains(required, name)
	if optional {
		add(f, nil, false)
	}
	switch {
	case typ.List != nil && typ.Map == nil:
		if optional {
			add(f, []any{}, false)
		}
		for _, item := range l.elements(f) {
			add(f, item, true)
		}
	case typ.Map != nil && typ.Scalar == nil:
		if optional {
			add(f, map[string]any{}, false)
		}
		if other := l.otherField(typ.Map); optional && other != nil {
			add(f, other, false)
		}
		if len(typ.Map.Fields) == 0 && f.entry.Scalar != nil && name != "matchLabels" {
			for _, entry := range l.entries(f) {
				add(entry.field, entry.value, false)
			}
		}
	default:
		for _, value := range l.values(name, f) {
			add(f, value, false)
		}
	}
	return append(out, elsewhere...)
}

// The keys of labels, or of data, that no policy names; and the resources of containers.
const otherKey = "other"

var resources = []string{"memory", "cpu", "ephemeral-storage"} //nolint:gochecknoglobals // immutable

// entries are the mutations of a map of any names: those of the keys that policies name, in turn, and of one that none names.
func (l *literals) entries(f *field) []mutation {
	name, other := f.name(), mutation{field: f.below(otherKey), value: "other"}
	if isLabels(name) {
		name = labels
	}
	if f.quantity {
		unnamed := slices.DeleteFunc(slices.Clone(resources), func(resource string) bool { return slices.Contains(l.below[name], resource) })
		other = mutation{field: f.below(append(unnamed, otherKey)[0]), value: "1"}
	}
	lists := [][]mutation{{other}}
	for _, key := range l.below[name] {
		entry := f.below(key)
		var values []any
		if name == labels {
			for _, value := range l.labelValues(key) {
				values = append(values, value)
			}
			values = append(values, nil)
		} else {
			values = append([]any{nil}, l.entryValues(key, entry)...)
		}
		var list []mutation
		for _, value := range values {
			list = append(list, mutation{field: entry, value: value})
		}
		lists = append(lists, list)
	}
	return inTurn(lists)
}

// entryValues are those of a key of data, also as Secrets have them.
func (l *literals) entryValues(key string, entry *field) []any {
	values := l.values(key, entry)
	if l.words["base64_decode"] || l.words["base64"] {
		for _, value := range slices.Clone(values) {
			if text, ok := value.(string); ok {
				values = slices.Insert(values, 0, any(base64.StdEncoding.EncodeToString([]byte(text))))
			}
		}
	}
	if !entry.quantity {
		values = append(values, "")
	}
	return values
}

// labelValues are the values of a label: those that policies name, others, and those that are almost the same.
func (l *literals) labelValues(key string) []string {
	var exact, almost []string
	for _, value := range l.near[key] {
		text := fmt.Sprint(value) // a number is compared with a string
		exact = append(exact, texts(text)...)
		almost = append(append(almost, alike(text)...), compared(text)...)
	}
	return engine.Distinct(slices.Concat(exact, []string{"other", ""}, l.long(), almost))
}

// long is a string longer than one that policies cut off; none where they cut off none.
func (l *literals) long() []string {
	if !l.words["truncate"] && !l.words["substring"] {
		return nil
	}
	return []string{strings.Repeat("long", 15)} // each part of which may be a label
}

// otherField is a struct with a field that no policy names; nil where there is none that is simple.
func (l *literals) otherField(m *schema.Map) map[string]any {
	for _, f := range sortedFields(m) {
		if typ := f.Type.Inlined; !l.words[f.Name] && isScalar(typ) && *typ.Scalar != schema.String {
			return map[string]any{f.Name: scalars(typ)[0]}
		}
	}
	return nil
}

// maxNamed bounds the names that elements of one list get.
const maxNamed = 4

// elements are those that a list may have in addition: a minimal one, and one with each name that policies name.
func (l *literals) elements(f *field) []any {
	list := f.name()
	var names []string
	for _, of := range []string{list, "name"} {
		for _, value := range l.near[of] {
			if text, ok := value.(string); ok {
				names = append(names, texts(text)...)
			}
		}
	}
	if f.entry.Map == nil {
		return append(slices.Clone(l.near[list]), "other")
	}
	names = slices.DeleteFunc(engine.Distinct(names), func(name string) bool {
		return list != "env" && len(validation.IsDNS1123Label(name)) > 0 || len(validation.IsEnvVarName(name)) > 0 && list == "env"
	})
	item, _ := minimalElement(f.path, f.entry).(map[string]any)
	out := []any{item}
	if item["name"] == nil {
		return out
	}
	for _, name := range names[:min(len(names), maxNamed)] {
		named, _ := runtime.DeepCopyJSONValue(item).(map[string]any)
		named["name"] = name
		out = append(out, named)
		if list == "env" {
			out = append(out, map[string]any{"name": name}) // a rule may give it what no other value stands beside
		}
	}
	return out
}

// values are those of a scalar field: those that policies name, those that are almost the same, and others.
func (l *literals) values(name string, f *field) []any {
	var out []any
	add := func(values ...any) {
		for _, value := range values {
			if fits(value, f.typ()) && !slices.Contains(out, value) {
				out = append(out, value)
			}
		}
	}
	if f.quantity {
		for _, value := range append(slices.Clone(l.near[name]), "1") {
			for _, text := range amounts(fmt.Sprint(value)) {
				add(text)
			}
		}
		return out
	}
	switch name {
	case "creationTimestamp":
		return []any{"2024-01-01T00:00:00Z"}
	case "image":
		for _, image := range l.images() {
			add(image)
		}
	}
	var almost []any
	for _, value := range l.near[name] {
		add(value)
		switch value := value.(type) {
		case string:
			for _, text := range texts(value) {
				add(text)
			}
			for _, text := range alike(value) {
				almost = append(almost, text)
			}
		case int64:
			add(value+1, value-1)
		}
	}
	add(f.allowed...)
	add(scalars(f.typ())...)
	if f.allowed == nil {
		add(almost...)
	}
	return out
}

// imageText matches what may be the name of an image.
var imageText = regexp.MustCompile(`^[a-z0-9][-\w./:@]*$`)

// images are those that policies name, and such as there are, in turn.
func (l *literals) images() []string {
	var own, named []string
	for _, value := range l.near["image"] {
		pattern, _ := value.(string)
		for _, text := range texts(pattern) {
			own, named = append(own, imagesOf(text)...), append(named, text+":1")
		}
	}
	out := append(inTurn([][]string{own, {
		"nginx:latest", "nginx", "ghcr.io/team/app@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "team/app:1",
		"registry.example.com:5000/team/app:1", "registry.example.com/team/app:1", "docker.io/nginx:1", "nginx:1.25", "registry.example.com:5000/team/app",
	}}), named...)
	return slices.DeleteFunc(out, func(image string) bool { return !imageText.MatchString(image) })
}

// imagesOf are images that begin, or end, with a string of a policy.
func imagesOf(text string) []string {
	switch {
	case strings.HasPrefix(text, ":"):
		return []string{"nginx" + text}
	case strings.HasPrefix(text, "x:"):
		return []string{"nginx" + text[1:], "nginx" + text[1:] + "x", "nginx:x" + text[2:]}
	case strings.HasSuffix(text, "/"):
		return []string{text + "app:1", text + "app", text + "team/app:latest"}
	case strings.Contains(text, ":"):
		return []string{text}
	case strings.ContainsAny(text, "./"):
		return []string{text + "/app:1", text + "/app", "other/" + text + "/app:1"}
	}
	return nil
}
