package diff

import (
	"maps"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Copy is an object in which values are replaced by texts. What is not on the way to one of them is shared with the object, which is
// not modified. Each map and each list on the way is copied once, and each list is searched once. It is not safe for
// concurrent use.
type Copy struct {
	of     any
	places *Pointers
	now    any
	own    map[string]bool // the pointers of what is copied
}

// CopyOf returns a Copy of an object in which nothing is replaced.
func CopyOf(object any) *Copy {
	return &Copy{of: object, places: PointersIn(object), now: object, own: map[string]bool{}}
}

// Object is the object with all that was replaced.
func (c *Copy) Object() any { return c.now }

// Replace puts a text in the place of the value at a path. Where the object has no such path, nothing is done.
func (c *Copy) Replace(p fieldpath.Path, text string) { c.now = c.replaced("", c.of, c.now, p, text) }

func (c *Copy) replaced(pointer string, of, now any, p fieldpath.Path, text string) any {
	if len(p) == 0 {
		return text
	}
	next, i, below, ok := c.places.Step(pointer, of, p[0])
	if !ok {
		return now
	}
	switch in := now.(type) {
	case map[string]any:
		if !c.own[pointer] {
			in = maps.Clone(in)
		}
		name := *p[0].FieldName
		in[name] = c.replaced(next, below, in[name], p[1:], text)
		now = in
	case []any:
		if !c.own[pointer] {
			in = slices.Clone(in)
		}
		in[i] = c.replaced(next, below, in[i], p[1:], text)
		now = in
	default: // a text that was put there
		return now
	}
	c.own[pointer] = true
	return now
}
