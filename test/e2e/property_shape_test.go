package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// shape is the part of an OpenAPI schema that random values are made from.
type shape struct {
	Type        string            `json:"type"`
	Properties  map[string]*shape `json:"properties"`
	Required    []string          `json:"required"`
	Entries     *shape            `json:"additionalProperties"`
	Items       *shape            `json:"items"`
	Enum        []any             `json:"enum"`
	Keys        []string          `json:"example"` // of a map
	ListType    string            `json:"x-kubernetes-list-type"`
	MapKeys     []string          `json:"x-kubernetes-list-map-keys"`
	IntOrString bool              `json:"x-kubernetes-int-or-string"`
	Free        bool              `json:"x-kubernetes-preserve-unknown-fields"`
	MinItems    int               `json:"minItems"`
	InsideOnly  bool              `json:"x-inside-only"` // never removed or replaced as a whole
}

// normalise gives the values to choose from the types that JSON gives objects.
func (s *shape) normalise() {
	if s == nil {
		return
	}
	if s.Enum != nil {
		s.Enum = throughJSON(s.Enum).([]any)
	}
	s.Entries.normalise()
	s.Items.normalise()
	for _, p := range s.Properties {
		p.normalise()
	}
}

// oddStrings are those that JSON, YAML, JSON pointers and field paths trip over.
var oddStrings = []any{"", "a", "b", "1", "true", "null", "1e3", "ü\n\ttab\u2028", "~0~1/", `"=,]`, "- a: b\n"}

// random makes a value; required fields are there, others perhaps.
func (s *shape) random(r *rand.Rand) any {
	switch {
	case s.Enum != nil:
		return s.Enum[r.IntN(len(s.Enum))]
	case s.Type == "string":
		return oddStrings[r.IntN(len(oddStrings))]
	case s.Type == "boolean":
		return r.IntN(2) == 0
	case s.Type == "array":
		return s.randomList(r)
	case s.Entries != nil:
		out := map[string]any{}
		for _, k := range s.keys() {
			if r.IntN(2) == 0 {
				out[k] = s.Entries.random(r)
			}
		}
		return out
	case s.Free && s.Type == "":
		return randomJSON(r, 2)
	case s.Free && (s.Properties == nil || r.IntN(2) == 0):
		return map[string]any{"p": randomJSON(r, 3), "q": randomJSON(r, 2)}
	}
	out := map[string]any{}
	for _, name := range s.names() {
		if s.requires(name) || r.IntN(5) < 2 {
			out[name] = s.Properties[name].random(r)
		}
	}
	return out
}

func (s *shape) randomList(r *rand.Rand) []any {
	out := []any{}
	for range max(s.MinItems, r.IntN(4)) {
		x := s.Items.random(r)
		if elementOf(out, s.identity(x)) < 0 {
			out = append(out, x)
		}
	}
	return out
}

// randomJSON is what a field without a schema may hold.
func randomJSON(r *rand.Rand, depth int) any {
	n := 7
	if depth == 0 {
		n = 5
	}
	switch r.IntN(n) {
	case 0:
		return oddStrings[r.IntN(len(oddStrings))]
	case 1:
		return int64(r.IntN(3))
	case 2:
		return 1.5
	case 3:
		return r.IntN(2) == 0
	case 4:
		return map[string]any{}
	case 5:
		return map[string]any{"name": randomJSON(r, 0), "x/y": randomJSON(r, depth-1)}
	}
	return []any{randomJSON(r, depth-1), randomJSON(r, depth-1)}
}

func (s *shape) names() []string { return slices.Sorted(maps.Keys(s.Properties)) }

func (s *shape) keys() []string {
	if s.Keys == nil {
		return []string{"a", "b", "c.d/e~f"}
	}
	return s.Keys
}

func (s *shape) requires(name string) bool { return slices.Contains(s.Required, name) }

// identity is what identifies an element of the list: its keys, or
// the element itself.
func (s *shape) identity(element any) fieldpath.PathElement {
	if fields, ok := element.(map[string]any); ok && s.ListType == "map" {
		key := value.FieldList{}
		for _, k := range s.MapKeys {
			if v, ok := fields[k]; ok {
				key = append(key, value.Field{Name: k, Value: value.NewValueInterface(v)})
			}
		}
		key.Sort()
		return fieldpath.PathElement{Key: &key}
	}
	v := value.NewValueInterface(element)
	return fieldpath.PathElement{Value: &v}
}

// elementOf returns the position of the list element that a step of a path names, or -1.
func elementOf(list []any, e fieldpath.PathElement) int {
	return slices.IndexFunc(list, func(x any) bool {
		switch {
		case e.Value != nil:
			return value.Equals(value.NewValueInterface(x), *e.Value)
		case e.Key != nil:
			fields, ok := x.(map[string]any)
			return ok && !slices.ContainsFunc(*e.Key, func(k value.Field) bool {
				v, ok := fields[k.Name]
				return !ok || !value.Equals(value.NewValueInterface(v), k.Value)
			})
		}
		return false
	})
}

// site is a place in an object that a change may touch.
type site struct {
	at     fieldpath.Path
	shape  *shape // of the value
	value  any    // nil where there is none
	there  bool
	fixed  bool // may not be removed
	inList bool // as an element
}

// sites lists all places of a value: what is there, and what could be.
func (s *shape) sites(at fieldpath.Path, v any) []site {
	var out []site
	switch v := v.(type) {
	case map[string]any:
		for _, name := range s.names() {
			out = append(out, s.Properties[name].below(at, v, name, s.requires(name))...)
		}
		if s.Entries != nil {
			for _, k := range s.keys() {
				out = append(out, s.Entries.below(at, v, k, false)...)
			}
		}
		if s.Free {
			out = append(out, freeSites(at, v)...)
		}
	case []any:
		for i, x := range v {
			e := s.identity(x)
			if s.ListType == "" {
				e = fieldpath.PathElement{Index: &i}
			}
			here := append(slices.Clip(at), e)
			out = append(out, site{at: here, shape: s.element(), value: x, there: true, inList: true})
			out = append(out, s.element().sites(here, x)...)
		}
	}
	return out
}

func (s *shape) below(at fieldpath.Path, parent map[string]any, name string, fixed bool) []site {
	v, there := parent[name]
	here := append(slices.Clip(at), fieldpath.PathElement{FieldName: &name})
	inside := s.sites(here, v)
	if s.InsideOnly {
		return inside
	}
	return append(inside, site{at: here, shape: s, value: v, there: there, fixed: fixed})
}

// anything is the shape of what has no schema.
func anything() *shape { return &shape{Free: true} }

// element is the shape of a list's elements.
func (s *shape) element() *shape {
	if s.Items == nil {
		return anything()
	}
	return s.Items
}

// freeSites are the places of a value without a schema.
func freeSites(at fieldpath.Path, fields map[string]any) []site {
	var out []site
	for _, k := range []string{"p", "q", "name", "x/y"} {
		out = append(out, anything().below(at, fields, k, false)...)
	}
	return out
}

// tweak is one thing that a change does to an object. Done twice it does no more
// than once, as what a policy says.
type tweak struct {
	Do    action
	At    fieldpath.Path
	Value any
	// To is the position of an insertion. The element is not inserted where there
	// is one with this identity.
	To       int
	Identity fieldpath.PathElement
}

type action string

const (
	doSet    action = "set"
	doRemove action = "remove"
	doInsert action = "insert"
	doFront  action = "move to the front"
)

// String is the edit as a failing test shows it.
func (e tweak) String() string {
	switch e.Do {
	case doSet:
		return fmt.Sprintf("set %s = %s", e.At, jsonOf(e.Value))
	case doInsert:
		return fmt.Sprintf("insert into %s at %d: %s", e.At, e.To, jsonOf(e.Value))
	}
	return fmt.Sprintf("%s %s", e.Do, e.At)
}

// edited is a copy of an object with edits made.
func edited(object map[string]any, edits []tweak) map[string]any {
	out := throughJSON(object).(map[string]any)
	for _, e := range edits {
		out = e.in(out, e.At).(map[string]any)
	}
	return out
}

// in makes the edit in a value of which a rest of the path is still to be walked.
// An element that is not there cannot be changed; a map on the way is made.
func (e tweak) in(v any, rest fieldpath.Path) any {
	if len(rest) == 0 {
		return e.here(v)
	}
	step := rest[0]
	last := len(rest) == 1
	if step.FieldName != nil {
		return e.inMap(v, *step.FieldName, rest)
	}
	list, _ := v.([]any)
	i := elementOf(list, step)
	if step.Index != nil {
		i = *step.Index
	}
	if i < 0 || i >= len(list) {
		return v
	}
	list = slices.Clone(list)
	switch {
	case last && e.Do == doRemove:
		return slices.Delete(list, i, i+1)
	case last && e.Do == doFront:
		x := list[i]
		return slices.Insert(slices.Delete(list, i, i+1), 0, x)
	}
	list[i] = e.in(list[i], rest[1:])
	return list
}

func (e tweak) inMap(v any, name string, rest fieldpath.Path) any {
	fields, ok := v.(map[string]any)
	if _, there := fields[name]; !there && e.Do != doSet && e.Do != doInsert {
		return v
	}
	if !ok {
		fields = nil
	}
	fields = maps.Clone(fields)
	if fields == nil {
		fields = map[string]any{}
	}
	if len(rest) == 1 && e.Do == doRemove {
		delete(fields, name)
		return fields
	}
	fields[name] = e.in(fields[name], rest[1:])
	return fields
}

func (e tweak) here(v any) any {
	switch e.Do {
	case doSet:
		return e.Value
	case doInsert:
		list, _ := v.([]any)
		if elementOf(list, e.Identity) >= 0 {
			return v
		}
		return slices.Insert(slices.Clone(list), min(e.To, len(list)), e.Value)
	}
	return v
}

// randomTweak is made for an object as it is; it may meet another one.
func (s *shape) randomTweak(r *rand.Rand, object map[string]any) tweak {
	sites := s.sites(nil, object)
	at := sites[r.IntN(len(sites))]
	switch list, isList := at.value.([]any); {
	case !at.there:
		return at.fill(r)
	case isList && r.IntN(3) > 0:
		return at.insert(r, list)
	case at.inList && r.IntN(3) == 0:
		return tweak{Do: doFront, At: at.at}
	case !at.fixed && r.IntN(3) == 0:
		return tweak{Do: doRemove, At: at.at}
	}
	return tweak{Do: doSet, At: at.at, Value: at.shape.randomOrOdd(r, at.fixed)}
}

// fill is for a place where nothing is, as far as is known: a default may be.
func (s site) fill(r *rand.Rand) tweak {
	if r.IntN(8) == 0 {
		return tweak{Do: doRemove, At: s.at}
	}
	return tweak{Do: doSet, At: s.at, Value: s.shape.randomOrOdd(r, s.fixed)}
}

func (s site) insert(r *rand.Rand, list []any) tweak {
	v := s.shape.element().random(r)
	return tweak{Do: doInsert, At: s.at, Value: v, To: r.IntN(len(list) + 1), Identity: s.shape.identity(v)}
}

// randomOrOdd is now and then null, or empty.
func (s *shape) randomOrOdd(r *rand.Rand, fixed bool) any {
	switch {
	case fixed || r.IntN(10) > 0:
	case r.IntN(2) == 0:
		return nil
	case s.Type == "array":
		return []any{}
	case s.Type == "object":
		return map[string]any{}
	}
	return s.random(r)
}

// throughJSON copies a value, and gives numbers the types that they have in objects.
func throughJSON(v any) any {
	var out any
	if err := utiljson.Unmarshal([]byte(jsonOf(v)), &out); err != nil {
		panic(err)
	}
	return out
}

func jsonOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func newProperty(t *testing.T) *property {
	t.Helper()
	made := 0
	newName := func() string { made++; return fmt.Sprintf("random-%d", made) }
	p := &property{writePath: newWritePath(t), counted: map[string]int{}, newName: newName}
	archive, err := txtar.ParseFile(filepath.Join("testdata", "property", "kinds.txtar"))
	check(t, err)
	shapes, objects := map[string]*shape{}, map[string]map[string]any{}
	for _, f := range archive.Files {
		name, isSchema := strings.CutSuffix(f.Name, ".schema")
		if isSchema {
			shapes[name] = &shape{}
			check(t, yaml.Unmarshal(f.Data, shapes[name]))
			shapes[name].normalise()
			p.objects["schema/"+name] = string(f.Data)
			continue
		}
		var object map[string]any
		check(t, yaml.Unmarshal(f.Data, &object))
		objects[strings.TrimSuffix(f.Name, ".object")] = throughJSON(object).(map[string]any)
	}
	for _, kind := range []string{"Gizmo", "Loose"} {
		check(t, p.define(kind, strings.ToLower(kind)))
	}
	for _, k := range []struct{ name, object, changing, subresource string }{
		{"ConfigMap", "configmap", "configmap", ""},
		{"Secret", "secret", "secret", ""},
		{"Service", "service", "service", ""},
		{"Deployment", "deployment", "deployment", ""},
		{"Gizmo", "gizmo", "gizmo", ""},
		{"Loose", "loose", "loose", ""},
		{"Deployment", "deployment", "deployment", ""},
		{"Gizmo", "gizmo", "gizmo", ""},
		{"Deployment's status", "deployment", "deployment-status", "status"},
		{"Deployment's scale", "deployment", "scale", "scale"},
		{"Gizmo's status", "gizmo", "gizmo", "status"},
	} {
		p.kinds = append(p.kinds, newPropertyKind(k.name, objects[k.object], k.subresource,
			shapes[k.object], shapes[k.changing], shapes["metadata"]))
	}
	return p
}

func newPropertyKind(name string, object map[string]any, subresource string, whole, changing, metadata *shape) *propertyKind {
	gvk := schema.FromAPIVersionAndKind(object["apiVersion"].(string), object["kind"].(string))
	k := &propertyKind{name: name, object: object, subresource: subresource}
	k.key = engine.ObjectKey{GroupKind: gvk.GroupKind(), Version: gvk.Version, Subresource: subresource}
	k.shape = whole.with("metadata", metadata)
	k.changing = k.shape
	switch subresource {
	case "status":
		k.changing = &shape{Type: "object", Required: []string{"status"}, Properties: map[string]*shape{"status": changing.Properties["status"]}}
	case "scale":
		k.changing = changing
	}
	return k
}

// with is the shape of an object, but for its status, with metadata.
func (s *shape) with(name string, p *shape) *shape {
	out := *s
	out.Properties = maps.Clone(s.Properties)
	delete(out.Properties, "status")
	out.Properties[name] = p
	return &out
}
