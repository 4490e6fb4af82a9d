package variant

import (
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// site is a field that may be varied: its path, and its type where that is known.
type site struct {
	path []string // "[]" stands for elements
	atom schema.Atom
	// entry is the type of what is in a list, or in a map of any names, and quantity reports that this, or the field itself, is
	// a quantity.
	entry    schema.Atom
	quantity bool
	// allowed are the only values that the field may have; nil where that is not so.
	allowed []any
	// atoms are the types of what is on the way, by the length of the path to it.
	atoms []schema.Atom
}

func (s *site) name() string {
	for i := len(s.path) - 1; i >= 0; i-- {
		if s.path[i] != element {
			return s.path[i]
		}
	}
	return ""
}

// The bounds of what is looked for in a schema.
const (
	maxDepth = 14
	maxSites = 400
)

// structural are fields that lead to the others; a policy for Pods need not name them.
var structural = []string{"metadata", "spec", "template", "jobTemplate"} //nolint:gochecknoglobals // an immutable table

// beside are fields that are like one that a policy names, and easily forgotten.
var beside = map[string][]string{ //nolint:gochecknoglobals // an immutable table
	"containers":     {"initContainers", "ephemeralContainers"},
	"initContainers": {"containers"},
	"port":           {"protocol"},
	"containerPort":  {"protocol"},
}

// named reports whether a policy may be about a field of this name.
func (v *vocabulary) named(name string) bool {
	if v.words[name] || slices.Contains(structural, name) {
		return true
	}
	for of, others := range beside {
		if v.words[of] && slices.Contains(others, name) {
			return true
		}
	}
	return false
}

// sites finds the fields of a kind that policies may be about.
func (v *vocabulary) sites(t diff.Type) []site {
	if t.Schema == nil {
		return nil
	}
	w := walker{vocabulary: v, schema: t.Schema}
	root, _ := t.Schema.Resolve(t.Ref)
	w.walk(nil, []schema.Atom{root}, false)
	return w.found
}

type walker struct {
	vocabulary *vocabulary
	schema     *schema.Schema
	found      []site
}

// sortedFields are the fields of a struct by name: a schema has them in no order.
func sortedFields(m *schema.Map) []schema.StructField {
	return slices.SortedFunc(slices.Values(m.Fields), func(a, b schema.StructField) int { return strings.Compare(a.Name, b.Name) })
}

// walk visits what is below a path, whose types are the atoms. Named says that a policy names a
// part of the path.
func (w *walker) walk(path []string, atoms []schema.Atom, named bool) {
	if len(path) > maxDepth || len(w.found) >= maxSites {
		return
	}
	at := atoms[len(atoms)-1]
	below := func(step string, ref schema.TypeRef, named bool) {
		atom, ok := w.schema.Resolve(ref)
		if !ok {
			return
		}
		next, types := append(slices.Clone(path), step), append(slices.Clone(atoms), atom)
		if named && step != element {
			found := site{path: next, atom: atom, atoms: types}
			if atom.Map != nil && len(atom.Map.Fields) == 0 {
				ref = atom.Map.ElementType
			} else if atom.List != nil {
				ref = atom.List.ElementType
			}
			found.entry, _ = w.schema.Resolve(ref)
			found.quantity = ref.NamedType != nil && strings.HasSuffix(*ref.NamedType, ".resource.Quantity")
			w.found = append(w.found, found)
		}
		w.walk(next, types, named)
	}
	switch {
	case at.List != nil:
		below(element, at.List.ElementType, named)
	case at.Map != nil:
		for _, f := range sortedFields(at.Map) {
			if len(path) == 0 && slices.Contains([]string{"apiVersion", "kind"}, f.Name) {
				continue
			}
			if len(path) == 0 && !slices.Contains([]string{"metadata", "spec", "data", "type", "rules", "subjects", "roleRef", "webhooks"}, f.Name) && !w.vocabulary.words[f.Name] {
				continue
			}
			if len(path) == 1 && path[0] == "metadata" && !slices.Contains([]string{"labels", "annotations", "generateName", "ownerReferences", "finalizers", "resourceVersion", "uid", "creationTimestamp"}, f.Name) {
				continue
			}
			if !w.vocabulary.named(f.Name) {
				continue
			}
			below(f.Name, f.Type, named || w.vocabulary.words[f.Name] || !slices.Contains(structural, f.Name))
		}
	}
}

// sitesOf finds the fields of an object that policies may be about, where there is no schema.
func (v *vocabulary) sitesOf(object map[string]any) []site {
	var out []site
	var walk func(path []string, value any)
	walk = func(path []string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for _, name := range sortedKeys(value) {
				if len(path) == 0 && (name == "apiVersion" || name == "kind" || name == "status" || name == "metadata") {
					continue
				}
				next := append(slices.Clone(path), name)
				if v.words[name] && len(out) < maxSites {
					out = append(out, site{path: next, atom: atomOf(value[name]), atoms: make([]schema.Atom, len(next)+1)})
				}
				walk(next, value[name])
			}
		case []any:
			if len(value) > 0 {
				walk(append(slices.Clone(path), element), value[0])
			}
		}
	}
	walk(nil, object)
	for _, pointer := range v.pointers {
		seen := slices.ContainsFunc(out, func(s site) bool { return slices.Equal(s.path, pointer) }) // with its type
		if !seen && len(pointer) > 0 && pointer[0] != "metadata" && pointer[len(pointer)-1] != element {
			out = append(out, site{path: pointer, atoms: make([]schema.Atom, len(pointer)+1)})
		}
	}
	return out
}

// atomOf is the type that a value seems to have.
func atomOf(v any) schema.Atom {
	scalar := func(s schema.Scalar) schema.Atom { return schema.Atom{Scalar: &s} }
	switch v.(type) {
	case map[string]any:
		return schema.Atom{Map: &schema.Map{}}
	case []any:
		return schema.Atom{List: &schema.List{}}
	case bool:
		return scalar(schema.Boolean)
	case int64, float64:
		return scalar(schema.Numeric)
	}
	return scalar(schema.String)
}
