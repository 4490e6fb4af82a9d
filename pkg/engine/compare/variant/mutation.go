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
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// which selects the list elements to mutate.
type which int

const (
	first which = iota
	all
	last
)

type mutation struct {
	field *field
	which which
	value any  // nil removes the field
	more  bool // adds an element to a list
	rank  int
}

// apply mutates an object, adds required fields to new structs, and reports whether anything changed.
func (k *kind) apply(m *mutation, object map[string]any) bool {
	changed := m.apply(object, m.field.path, k.typ)
	if changed && m.value != nil {
		k.completed(object, k.typ, nil)
	}
	return changed
}

// apply changes the field at a path below a map. It creates the parents, unless the field is to be removed.
func (m *mutation) apply(object map[string]any, path []string, t diff.Type) bool {
	name := path[0]
	now, there := object[name]
	switch {
	case len(path) == 1:
		return m.write(object, name)
	case path[1] != element:
		below, ok := now.(map[string]any)
		if !ok {
			if m.value == nil || there {
				return false
			}
			below = map[string]any{}
			object[name] = below
		}
		return m.apply(below, path[1:], t.Field(name))
	case len(path) == 2 || path[2] == element: // the list of the element is not a field
		return false
	}
	list, _ := now.([]any)
	// so that the last element is not the first
	if m.value != nil && (len(list) == 0 || len(list) == 1 && m.which == last) {
		item := minimalElement(m.field.path[:len(m.field.path)-len(path)+1], atomOf(t.Field(name).Element()))
		list = append(slices.Clone(list), another(list, item))
		object[name] = list
	}
	changed := false
	for i, item := range list {
		if fields, ok := item.(map[string]any); ok &&
			(m.which == all || m.which == first && i == 0 || m.which == last && i == len(list)-1) {
			changed = m.apply(fields, path[2:], t.Field(name).Element()) || changed
		}
	}
	return changed
}

func (m *mutation) write(object map[string]any, name string) bool {
	now, there := object[name]
	list, _ := now.([]any)
	switch {
	case m.more:
		object[name] = append(slices.Clone(list), another(list, m.value))
	case m.value != nil:
		object[name] = runtime.DeepCopyJSONValue(m.value)
	default:
		delete(object, name)
		return there
	}
	return true
}

// another returns an element with a name that the list lacks.
func another(list []any, item any) any {
	item = runtime.DeepCopyJSONValue(item)
	fields, _ := item.(map[string]any)
	for _, known := range list {
		if known, _ := known.(map[string]any); fields["name"] != nil && known["name"] == fields["name"] {
			fields["name"] = fmt.Sprintf("%s-%d", fields["name"], len(list)+1)
		}
	}
	return item
}

// samples are valid elements of well-known lists, by the name or the path of the list.
var samples = map[string]map[string]any{ //nolint:gochecknoglobals // an immutable table
	"containers":          {"name": "c", "image": "nginx:1"},
	"initContainers":      {"name": "i", "image": "busybox:1"},
	"ephemeralContainers": {"name": "e", "image": "busybox:1"},
	"volumes":             {"name": "v", "emptyDir": map[string]any{}},
	"volumeMounts":        {"name": "v", "mountPath": "/v"},
	"env":                 {"name": "E", "value": "v"},
	"envFrom":             {"configMapRef": map[string]any{"name": "x"}},
	"spec.ports":          {"port": int64(80)}, // of a Service
	"ports":               {"containerPort": int64(80)},
	"tolerations":         {"key": "k", "operator": "Exists"},
	"hostAliases":         {"ip": "192.0.2.1"},
	"ownerReferences": {
		"apiVersion": "v1", "kind": "Pod", "name": "x",
		"uid": "00000000-0000-0000-0000-000000000000",
	},
}

func minimalElement(list []string, typ schema.Atom) any {
	for _, name := range []string{strings.Join(list, "."), list[len(list)-1]} {
		if sample, ok := samples[name]; ok {
			return runtime.DeepCopyJSONValue(sample)
		}
	}
	if typ.Map == nil {
		return scalars(typ)[0]
	}
	for _, key := range []string{"name", "key"} {
		if _, ok := typ.Map.FindField(key); ok {
			return map[string]any{key: "x0"}
		}
	}
	return map[string]any{}
}

// scalarOf returns the scalar type; empty for other types.
func scalarOf(typ schema.Atom) schema.Scalar {
	if typ.Scalar != nil && typ.Map == nil && typ.List == nil {
		return *typ.Scalar
	}
	return ""
}

// scalars returns unusual values of a type.
func scalars(typ schema.Atom) []any {
	switch scalarOf(typ) {
	case schema.Boolean:
		return []any{true, false}
	case schema.Numeric:
		return []any{int64(0), int64(1), int64(5)}
	}
	return []any{"other"}
}

func fits(value any, typ schema.Atom) bool {
	want := scalarOf(typ)
	switch value.(type) {
	case string:
		return want != schema.Boolean && want != schema.Numeric
	case bool:
		return want != schema.String && want != schema.Numeric
	case int64:
		return want != schema.String && want != schema.Boolean
	}
	return want == "" || want == "untyped"
}

// required are fields that are never removed.
var required = []string{"containers", "metadata", "spec", "template", "jobTemplate", "selector"} //nolint:gochecknoglobals // an immutable table

// depthRank delays mutations for each step of their path: few policies read deep fields, and there are many
// of them.
const depthRank = 2

// mutations returns the mutations of a field: removed, empty, with another value or with another element.
func (l *literals) mutations(f *field) []mutation {
	var out, elsewhere []mutation // of the first list element, and of others
	add := func(m mutation) {
		out = append(out, m)
		if slices.Contains(f.path, element) {
			everywhere, end := m, m
			everywhere.which, end.which = all, last
			elsewhere = append(elsewhere, everywhere, end)
		}
	}
	atom := f.atom()
	optional := len(f.path) > 1 && !slices.Contains(required, f.name())
	if optional {
		add(mutation{field: f})
	}
	switch {
	case atom.List != nil && atom.Map == nil:
		if optional {
			add(mutation{field: f, value: []any{}})
		}
		for _, item := range l.elements(f) {
			add(mutation{field: f, value: item, more: true})
		}
	case atom.Map != nil && atom.Scalar == nil:
		if optional {
			add(mutation{field: f, value: map[string]any{}})
		}
		if other := l.otherField(atom.Map); optional && other != nil {
			add(mutation{field: f, value: other})
		}
		if len(atom.Map.Fields) == 0 && atomOf(f.typ.Field("")).Scalar != nil && f.name() != "matchLabels" {
			for _, m := range l.entries(f) {
				add(m)
			}
		}
	default:
		for _, value := range l.values(f) {
			add(mutation{field: f, value: value})
		}
	}
	depth := len(f.path)
	if f.name() == "image" {
		depth = min(depth, 2) // many policies are about images, deep as they are
	}
	out = append(out, elsewhere...)
	for i := range out {
		out[i].rank = i + depthRank*depth
	}
	return out
}

// A key of labels or data that no policy names, and the resources of containers.
const otherKey = "other"

var resources = []string{"memory", "cpu", "ephemeral-storage", otherKey} //nolint:gochecknoglobals // immutable

// entries returns the mutations of a free-form map: for the keys named in policies in turn, and for an
// unnamed one.
func (l *literals) entries(f *field) []mutation {
	name, other := f.name(), mutation{field: f.entry(otherKey), value: otherKey}
	if isLabels(name) {
		name = labels
	}
	if f.entry("").typ.IsQuantity() {
		unnamed := slices.IndexFunc(resources,
			func(resource string) bool { return !slices.Contains(l.below[name], resource) })
		other = mutation{field: f.entry(resources[max(unnamed, 0)]), value: "1"}
	}
	lists := [][]mutation{{other}}
	for _, key := range l.below[name] {
		entry := f.entry(key)
		var list []mutation
		if name == labels {
			for _, value := range l.labelValues(key) {
				list = append(list, mutation{field: entry, value: value})
			}
			list = append(list, mutation{field: entry})
		} else {
			list = append(list, mutation{field: entry})
			for _, value := range l.entryValues(entry) {
				list = append(list, mutation{field: entry, value: value})
			}
		}
		lists = append(lists, list)
	}
	return inTurn(lists)
}

// entryValues returns values for a key of data, also base64-encoded for Secrets.
func (l *literals) entryValues(entry *field) []any {
	var out []any
	values := l.values(entry)
	if l.words["base64_decode"] || l.words["base64"] {
		for _, value := range slices.Backward(values) {
			if text, ok := value.(string); ok {
				out = append(out, base64.StdEncoding.EncodeToString([]byte(text)))
			}
		}
	}
	if out = append(out, values...); !entry.typ.IsQuantity() {
		out = append(out, "")
	}
	return out
}

// labelValues returns label values: the ones named in policies, others, and near misses.
func (l *literals) labelValues(key string) []string {
	var exact, almost []string
	for _, value := range l.near[key] {
		text := fmt.Sprint(value) // a number is compared with a string
		exact, almost = append(exact, texts(text)...), slices.Concat(almost, similarStrings(text), compared(text))
	}
	return engine.Distinct(slices.Concat(exact, []string{"other", ""}, l.long(), almost))
}

// long returns a string longer than policies truncate to; none if they do not truncate.
func (l *literals) long() []string {
	if !l.words["truncate"] && !l.words["substring"] {
		return nil
	}
	return []string{strings.Repeat("long", 15)} // each part of it may be a label
}

// otherField returns a struct with a simple field that no policy names, or nil.
func (l *literals) otherField(m *schema.Map) map[string]any {
	for _, f := range sortedFields(m) {
		if typ := scalarOf(f.Type.Inlined); !l.words[f.Name] && typ != "" && typ != schema.String {
			return map[string]any{f.Name: scalars(f.Type.Inlined)[0]}
		}
	}
	return nil
}

// maxNamed bounds the names of new elements in one list.
const maxNamed = 4

// elements returns elements to add to a list: a minimal one, and one for each name in policies.
func (l *literals) elements(f *field) []any {
	list, entry := f.name(), atomOf(f.typ.Element())
	if entry.Map == nil {
		return append(slices.Clone(l.near[list]), otherKey)
	}
	item, _ := minimalElement(f.path, entry).(map[string]any)
	out := []any{item}
	if item["name"] == nil {
		return out
	}
	isName := validation.IsDNS1123Label
	if list == "env" {
		isName = validation.IsEnvVarName
	}
	var names []string
	for _, value := range slices.Concat(l.near[list], l.near["name"]) {
		if text, ok := value.(string); ok {
			names = append(names, texts(text)...)
		}
	}
	names = slices.DeleteFunc(engine.Distinct(names), func(name string) bool { return len(isName(name)) > 0 })
	for _, name := range names[:min(len(names), maxNamed)] {
		named, _ := runtime.DeepCopyJSONValue(item).(map[string]any)
		named["name"] = name
		out = append(out, named)
		if list == "env" {
			out = append(out, map[string]any{"name": name}, // without a value, which a rule may add
				// only a preceding variable is expanded
				map[string]any{"name": item["name"], "value": "$(" + name + ")"})
		}
	}
	return out
}

// values returns values for a scalar field: the ones named in policies, near misses, and others.
func (l *literals) values(f *field) []any {
	name, atom := f.name(), f.atom()
	var out, almost []any
	add := func(to *[]any, values ...string) {
		for _, value := range values {
			*to = append(*to, value)
		}
	}
	switch {
	case f.typ.IsQuantity():
		for _, value := range append(slices.Clone(l.near[name]), "1") {
			add(&out, amounts(fmt.Sprint(value))...)
		}
		return engine.Distinct(out)
	case name == "creationTimestamp":
		return []any{"2024-01-01T00:00:00Z"}
	case name == "image":
		add(&out, l.images()...)
	}
	for _, value := range l.near[name] {
		out = append(out, value)
		switch value := value.(type) {
		case string:
			add(&out, texts(value)...)
			add(&almost, similarStrings(value)...)
		case int64:
			out = append(out, value+1, value-1)
		}
	}
	if out = slices.Concat(out, f.allowed, scalars(atom)); f.allowed == nil {
		out = append(out, almost...)
	}
	return engine.Distinct(slices.DeleteFunc(out, func(value any) bool { return !fits(value, atom) }))
}

// imageText matches possible image names.
var imageText = regexp.MustCompile(`^[a-z0-9][-\w./:@]*$`)

// images returns the images named in policies, alternating with real ones.
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
		"registry.example.com:5000/team/app:1", "registry.example.com/team/app:1", "docker.io/nginx:1",
		"nginx:1.25", "registry.example.com:5000/team/app",
	}}), named...)
	return slices.DeleteFunc(out, func(image string) bool { return !imageText.MatchString(image) })
}

// imagesOf returns images that begin or end with a string from a policy.
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
