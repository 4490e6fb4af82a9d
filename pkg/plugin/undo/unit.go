package undo

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// unitsOf returns the fields of a change by what is put back as one: a value, an
// element of a list by its key, its place in the list (Moved), or a list whose
// elements have no keys, whole.
func unitsOf(p diff.Partial) []engine.FieldChange {
	var out []engine.FieldChange
	for _, u := range p.Units() {
		if n := slices.IndexFunc(u.Path, func(e fieldpath.PathElement) bool { return e.Index != nil }); n >= 0 {
			u.Path, u.Kind = u.Path[:n], engine.Replaced
		}
		if last := len(out) - 1; last >= 0 && out[last].Path.Equals(u.Path) && out[last].Kind == u.Kind {
			out[last].Withheld = out[last].Withheld || u.Withheld
			continue
		}
		out = append(out, u)
	}
	return out
}

// splitElement splits the path of a list element that comes, goes or moves into
// that of the list and the element. It returns false for any other path.
func splitElement(p fieldpath.Path) (list fieldpath.Path, element fieldpath.PathElement, ok bool) {
	last := len(p) - 1
	return p[:last], p[last], p[last].FieldName == nil
}

// content is what is at a path.
type content struct {
	value any
	there bool
}

func at[M ~map[string]any](object M, p fieldpath.Path) content {
	v, ok := diff.Lookup(map[string]any(object), p)
	return content{value: v, there: ok}
}

// same compares two contents. To a server, null is as good as absent.
func (c content) same(other content) bool {
	return diff.Same(c.value, other.value) && (c.there == other.there || c.value == nil)
}
