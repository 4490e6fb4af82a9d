package e2e

import (
	"maps"
	"math/rand/v2"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
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
