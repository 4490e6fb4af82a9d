package touched

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// Change is the change of an object as an evaluation would hand it out, for
// printers: its objects hold what the change touches and their identity, no more.
func (t Touched) Change(o Object) engine.Change {
	key := o.Key()
	c := engine.Change{Subject: key, Before: t.object(o, t.Before)}
	c.After = c.Before
	if len(t.Fields) > 0 {
		c.After = t.object(o, t.After)
	}
	c.Target = engine.Target{Key: key, Object: c.Before}
	for _, f := range t.Fields {
		c.Fields = append(c.Fields, t.Field(f))
	}
	return c
}

// Field gives a field its values back; those of an element that moved are its
// places.
func (t Touched) Field(f Field) engine.FieldChange {
	from, to := t.Values(f)
	if f.Kind == engine.Moved {
		from, to = place(t.Before, f), place(t.After, f)
	}
	return engine.FieldChange{Path: f.Path, Kind: f.Kind, From: from, To: to, Rule: f.Rule}
}

// place is where a list element stands.
func place(p Part, f Field) any {
	last := len(f.Path) - 1
	list, _ := diff.Lookup(map[string]any(p), f.Path[:last])
	elements, _ := list.([]any)
	for i, element := range elements {
		if _, ok := diff.Lookup([]any{element}, f.Path[last:]); ok {
			return int64(i)
		}
	}
	return nil
}
