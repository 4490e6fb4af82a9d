package diff

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// cut keeps of two states of an object what the fields lead to.
func cut(before, after *unstructured.Unstructured, fields []engine.FieldChange) Partial {
	t := Partial{Before: before.Object, After: after.Object, Fields: fields}
	cutter := newTree(t)
	return Partial{Before: cutter.cut(before.Object), After: cutter.cut(after.Object), Fields: fields}
}

// tree holds the paths of fields.
type tree struct {
	// whole: keep everything from here on.
	whole    bool
	children []*branch
}

type branch struct {
	element fieldpath.PathElement
	tree
}

// newTree joins the paths of a change, and finds the lists that have to be kept
// whole.
func newTree(t Partial) *tree {
	root := &tree{}
	for _, f := range t.Fields {
		root.add(f.Path)
	}
	root.widen(map[string]any(t.Before), map[string]any(t.After))
	return root
}

func (t *tree) add(p fieldpath.Path) {
	at := t
	for _, e := range p {
		if e.Index != nil || e.Value != nil {
			break
		}
		at = at.child(e)
	}
	at.whole = true
}

func (t *tree) child(e fieldpath.PathElement) *tree {
	// Paths come in order: what was there is the last one.
	for _, b := range slices.Backward(t.children) {
		if b.element.Equals(e) {
			return &b.tree
		}
	}
	b := &branch{element: e}
	t.children = append(t.children, b)
	return &b.tree
}

// widen keeps a list whole if it has not the same elements at the same places in
// both states.
func (t *tree) widen(before, after any) {
	if t.whole {
		return
	}
	a, isList := before.([]any)
	b, isListToo := after.([]any)
	if isList && isListToo && !t.sameKeys(a, b) {
		t.whole = true
		return
	}
	for _, c := range t.children {
		x, _ := Lookup(before, fieldpath.Path{c.element})
		y, _ := Lookup(after, fieldpath.Path{c.element})
		c.widen(x, y)
	}
}

func (t *tree) sameKeys(a, b []any) bool {
	names := t.keyNames()
	return slices.EqualFunc(a, b, func(x, y any) bool {
		return Same(map[string]any(stub(x, names)), map[string]any(stub(y, names)))
	})
}

// keyNames are the fields that name an element of the list.
func (t *tree) keyNames() []string {
	var names []string
	for _, c := range t.children {
		if c.element.Key == nil {
			continue
		}
		for _, k := range *c.element.Key {
			names = append(names, k.Name)
		}
		break
	}
	return names
}

func stub(element any, names []string) Part {
	from, _ := element.(map[string]any)
	out := make(Part, len(names))
	for _, n := range names {
		if v, ok := from[n]; ok {
			out[n] = v
		}
	}
	return out
}

// cut keeps of an object what the tree leads to.
func (t *tree) cut(object map[string]any) Part {
	kept, _ := t.of(object).(map[string]any)
	return kept
}

func (t *tree) of(v any) any {
	if t.whole {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, c := range t.children {
			if c.element.FieldName == nil {
				continue
			}
			if below, ok := v[*c.element.FieldName]; ok {
				out[*c.element.FieldName] = c.of(below)
			}
		}
		return out
	case []any:
		return t.elements(v)
	}
	return v
}

func (t *tree) elements(list []any) []any {
	names := t.keyNames()
	out := make([]any, len(list))
	for i, element := range list {
		out[i] = map[string]any(stub(element, names))
		for _, c := range t.children {
			if _, ok := Lookup([]any{element}, fieldpath.Path{c.element}); !ok {
				continue
			}
			kept, ok := c.of(element).(map[string]any)
			if !ok {
				continue
			}
			kept = maps.Clone(kept)
			maps.Copy(kept, stub(element, names))
			out[i] = kept
		}
	}
	return out
}
