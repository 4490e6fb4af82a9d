package apply

import (
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/touched"
)

// leaf is one value that a change touches.
type leaf struct {
	path fieldpath.Path
	kind engine.ChangeKind
}

// leavesOf takes maps that are added or removed apart, so that a field that
// somebody else puts beside ours in the meantime is none of ours. Fields whose
// values are withheld have none that could be compared.
func leavesOf(t touched.Touched) (leaves []leaf, withheld bool) {
	for _, f := range t.Fields {
		if f.Withheld {
			withheld = true
			continue
		}
		from := t.After
		if f.Kind == engine.Removed {
			from = t.Before
		}
		content, _ := diff.Lookup(map[string]any(from), f.Path)
		leaves = appendLeaves(leaves, leaf{path: f.Path, kind: f.Kind}, content)
	}
	return leaves, withheld
}

func appendLeaves(out []leaf, at leaf, content any) []leaf {
	fields, _ := content.(map[string]any)
	if (at.kind != engine.Added && at.kind != engine.Removed) || len(fields) == 0 {
		return append(out, at)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		part := leaf{path: append(slices.Clip(at.path), fieldpath.PathElement{FieldName: &name}), kind: at.kind}
		out = appendLeaves(out, part, fields[name])
	}
	return out
}

// in is what an object holds at the leaf; nil where it is absent, which to a
// reader is the same as null. Of an element that moved it is its place.
func (l leaf) in(object map[string]any) any {
	if l.kind != engine.Moved {
		v, _ := diff.Lookup(object, l.path)
		return v
	}
	pointer, ok := diff.Pointer(object, l.path)
	if !ok {
		return nil
	}
	return pointer[strings.LastIndexByte(pointer, '/'):]
}

// differing are the leaves at which two states are not the same.
func differing(leaves []leaf, a, b map[string]any) []fieldpath.Path {
	var out []fieldpath.Path
	for _, l := range leaves {
		if !diff.Same(l.in(a), l.in(b)) {
			out = append(out, l.path)
		}
	}
	return out
}

// sameChange tells whether two changes are one: the same fields, with the same
// values before and after. Where other fields stand beside them does not count.
func sameChange(a, b touched.Touched) bool { return len(otherFields(a, b)) == 0 }

// otherFields are those that only one of two changes touches, or that they do not
// touch alike.
func otherFields(a, b touched.Touched) []fieldpath.Path {
	x, _ := leavesOf(a)
	y, _ := leavesOf(b)
	all := fieldpath.NewSet()
	for _, l := range append(slices.Clone(x), y...) {
		all.Insert(l.path)
	}
	touchedAlike := func(l leaf) bool {
		return diff.Same(l.in(a.Before), l.in(b.Before)) && diff.Same(l.in(a.After), l.in(b.After))
	}
	known := fieldpath.NewSet()
	for _, l := range x {
		if slices.ContainsFunc(y, func(o leaf) bool { return o.kind == l.kind && o.path.Equals(l.path) }) && touchedAlike(l) {
			known.Insert(l.path)
		}
	}
	var out []fieldpath.Path
	for p := range all.Difference(known).All() {
		out = append(out, slices.Clone(p))
	}
	return out
}

// sameFields tells whether two changes touch the same fields.
func sameFields(a, b touched.Touched) bool {
	return slices.EqualFunc(a.Fields, b.Fields, func(x, y touched.Field) bool {
		return x.Kind == y.Kind && x.Path.Equals(y.Path)
	})
}
