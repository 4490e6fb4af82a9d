package variant

import (
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// element stands for the elements of a list in a path.
const element = "[]"

// field is a field of a kind that policies may be about.
type field struct {
	path  []string
	types []schema.Atom // of what is on the way, by the length of the path to it; its own is the last
	// entry is the type of what is in a list, or in a map of any names.
	entry    schema.Atom
	quantity bool  // of the field itself, or of its entries
	allowed  []any // the only values that it may have; nil where that is not so
}

func (f *field) name() string { return f.path[len(f.path)-1] }

func (f *field) typ() schema.Atom { return f.types[len(f.types)-1] }

// below is the field of an entry of a map.
func (f *field) below(key string) *field {
	return &field{path: append(slices.Clone(f.path), key), types: append(slices.Clone(f.types), f.entry), quantity: f.quantity}
}

// The bounds of what is looked for in a schema.
const (
	maxDepth  = 14
	maxFields = 400
)

// structural are the fields that lead to others, which policies need not name.
var structural = []string{"metadata", "spec", "template", "jobTemplate"} //nolint:gochecknoglobals // an immutable table

// ofMetadata are the fields of metadata that are looked at.
var ofMetadata = []string{labels, "annotations", "generateName", "ownerReferences", "finalizers", "resourceVersion", "uid", "creationTimestamp"} //nolint:gochecknoglobals // an immutable table

// neighbors are fields that are like one that a policy names, and easily forgotten.
var neighbors = map[string][]string{ //nolint:gochecknoglobals // an immutable table
	"containers":     {"initContainers", "ephemeralContainers"},
	"initContainers": {"containers"},
	"port":           {"protocol"},
	"containerPort":  {"protocol"},
}

// walker finds the fields of a kind that policies may be about.
type walker struct {
	words  map[string]bool
	schema *schema.Schema
	found  []field
}

func (l *literals) fieldsOf(t diff.Type) []field {
	if t.Schema == nil {
		return nil
	}
	words := map[string]bool{}
	for word := range l.words {
		words[word] = true
		for _, neighbor := range neighbors[word] {
			words[neighbor] = true
		}
	}
	w := walker{words: words, schema: t.Schema}
	root, _ := t.Schema.Resolve(t.Ref)
	w.walk(nil, []schema.Atom{root}, false)
	return w.found
}

// sortedFields are the fields of a struct by name: a schema has them in no order.
func sortedFields(m *schema.Map) []schema.StructField {
	return slices.SortedFunc(slices.Values(m.Fields), func(a, b schema.StructField) int { return strings.Compare(a.Name, b.Name) })
}

// walk visits what is below a path. Named says that a policy names a part of it.
func (w *walker) walk(path []string, types []schema.Atom, named bool) {
	if len(path) > maxDepth || len(w.found) >= maxFields {
		return
	}
	switch at := types[len(types)-1]; {
	case at.List != nil:
		w.below(path, types, element, at.List.ElementType, named)
	case at.Map != nil:
		for _, f := range sortedFields(at.Map) {
			if w.leads(path, f.Name) {
				w.below(path, types, f.Name, f.Type, named || w.words[f.Name] || !slices.Contains(structural, f.Name))
			}
		}
	}
}

// leads reports whether a policy may be about a field, or about one below it.
func (w *walker) leads(path []string, name string) bool {
	switch {
	case len(path) == 0 && (name == "apiVersion" || name == "kind"):
		return false
	case len(path) == 1 && path[0] == "metadata" && !slices.Contains(ofMetadata, name):
		return false
	}
	return w.words[name] || slices.Contains(structural, name)
}

func (w *walker) below(path []string, types []schema.Atom, step string, ref schema.TypeRef, named bool) {
	typ, ok := w.schema.Resolve(ref)
	if !ok {
		return
	}
	path, types = append(slices.Clone(path), step), append(slices.Clone(types), typ)
	if named && step != element {
		if typ.Map != nil && len(typ.Map.Fields) == 0 {
			ref = typ.Map.ElementType
		} else if typ.List != nil {
			ref = typ.List.ElementType
		}
		f := field{path: path, types: types, quantity: ref.NamedType != nil && strings.HasSuffix(*ref.NamedType, ".resource.Quantity")}
		f.entry, _ = w.schema.Resolve(ref)
		w.found = append(w.found, f)
	}
	w.walk(path, types, named)
}

// typeOf is a type that a value could have, where no schema says it.
func typeOf(v any) schema.TypeRef {
	scalar := func(s schema.Scalar) schema.TypeRef { return schema.TypeRef{Inlined: schema.Atom{Scalar: &s}} }
	switch v := v.(type) {
	case map[string]any:
		out := &schema.Map{}
		for _, name := range sortedKeys(v) {
			out.Fields = append(out.Fields, schema.StructField{Name: name, Type: typeOf(v[name])})
		}
		return schema.TypeRef{Inlined: schema.Atom{Map: out}}
	case []any:
		out := &schema.List{ElementType: typeOf("")}
		if len(v) > 0 {
			out.ElementType = typeOf(v[0])
		}
		return schema.TypeRef{Inlined: schema.Atom{List: out}}
	case bool:
		return scalar(schema.Boolean)
	case int64, float64:
		return scalar(schema.Numeric)
	}
	return scalar(schema.String)
}
