package cel

import (
	"reflect"

	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Checked is the state of an object of which all is known to fit its schema. Apply configurations
// that change the object one after the other then read what they name alone, so that many of them
// take linear time. The zero value is none. It is for one object, and one goroutine.
type Checked struct {
	object map[string]any
	size   int // steps to read it, when all of it was read
	grown  int // and what was written since, replaced or not
}

// has reports whether a state is the one that is checked, and not to be read again: after it has
// doubled, since values may share so much that they grow without taking memory.
func (c *Checked) has(object map[string]any) bool {
	return c != nil && c.object != nil && engine.Identical(c.object, object) && c.grown <= c.size
}

// set remembers that all of a state was read.
func (c *Checked) set(object map[string]any, steps int) {
	if c != nil {
		*c = Checked{object: object, size: steps}
	}
}

// grow remembers a state that something was written to.
func (c *Checked) grow(object map[string]any, steps int) {
	c.object = object
	c.grown += steps
}

// narrowing relates an object to an apply configuration, in maps of which a merge takes each field
// by itself. It leaves alone what the configuration does not name.
type narrowing struct {
	schema *schema.Schema
	draft  *engine.Draft
}

// enters reports whether a merge takes each field of a value by itself.
func (n narrowing) enters(ref schema.TypeRef, live, patch any) (of *schema.Map, from, by map[string]any, ok bool) {
	atom, known := n.schema.Resolve(ref)
	from, isMap := live.(map[string]any)
	by, isPatch := patch.(map[string]any)
	if !known || atom.Map == nil || atom.Map.ElementRelationship == schema.Atomic || !isMap || !isPatch {
		return nil, nil, nil, false
	}
	return atom.Map, from, by, true
}

func typeOf(m *schema.Map, name string) schema.TypeRef {
	if field, ok := m.FindField(name); ok {
		return field.Type
	}
	return m.ElementType
}

// part returns what of a live value decides what a merge makes of it.
func (n narrowing) part(ref schema.TypeRef, live, patch any) any {
	of, from, by, ok := n.enters(ref, live, patch)
	if !ok {
		return live
	}
	out := make(map[string]any, len(by))
	for name, value := range by {
		if was, there := from[name]; there {
			out[name] = n.part(typeOf(of, name), was, value)
		}
	}
	return out
}

// put puts what a merge made of a part in its place in the live value, which it was a part of.
func (n narrowing) put(ref schema.TypeRef, live, patch, merged any) any {
	of, from, by, ok := n.enters(ref, live, patch)
	made, isMap := merged.(map[string]any)
	if !ok || !isMap {
		return merged
	}
	out := from
	for name := range by {
		value, there := made[name]
		if !there {
			continue
		}
		sets := n.draft.Sets()
		value = n.put(typeOf(of, name), from[name], by[name], value)
		if n.draft.Sets() > sets || !reflect.DeepEqual(from[name], value) {
			out = n.draft.Set(out, name, value)
		}
	}
	return out
}
