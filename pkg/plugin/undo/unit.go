package undo

import (
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// unit is what is put back as one: a value, an element of a list by its key, its
// place in the list (Moved), or a list whose elements have no keys, whole.
type unit struct {
	path     fieldpath.Path
	kind     engine.ChangeKind
	withheld bool
}

// isElement tells whether the unit is an element of a list that comes, goes or
// moves.
func (u *unit) isElement() bool { return u.last().FieldName == nil }

func (u *unit) last() fieldpath.PathElement { return u.path[len(u.path)-1] }

// list is where an element belongs.
func (u *unit) list() fieldpath.Path { return u.path[:len(u.path)-1] }

func (u *unit) sameList(other unit) bool { return u.list().Equals(other.list()) }

// unitsOf takes a change apart.
func unitsOf(t diff.Partial) []unit {
	var out []unit
	for _, f := range t.Units() {
		u := unit{path: f.Path, kind: f.Kind, withheld: f.Withheld}
		if n := firstIndex(f.Path); n >= 0 {
			u.path, u.kind = f.Path[:n], engine.Replaced
		}
		if last := len(out) - 1; last >= 0 && out[last].path.Equals(u.path) && out[last].kind == u.kind {
			out[last].withheld = out[last].withheld || u.withheld
			continue
		}
		out = append(out, u)
	}
	return out
}

func firstIndex(p fieldpath.Path) int {
	for i := range p {
		if p[i].Index != nil {
			return i
		}
	}
	return -1
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
