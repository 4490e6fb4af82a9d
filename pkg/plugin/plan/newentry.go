package plan

import (
	"errors"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// NewEntry is the entry of an evaluated object. It has the parts of the object that change.
func NewEntry(c *engine.Change) Entry {
	e := Entry{Object: c.Subject, Scoped: c.Scoped}
	if c.Before != nil {
		e.ResourceVersion = c.Before.GetResourceVersion()
		e.LastWrite = lastWrite(c.Before)
		e.Object.UID = c.Before.GetUID()
	}
	if c.Changed() && c.Before != nil && c.After != nil {
		e.Partial = diff.PartialOf(c)
	}
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Outcome == engine.Changed || s.Outcome.Incomplete() || len(s.Warnings) > 0 {
			e.Steps = append(e.Steps, stepOf(s))
		}
	}
	for _, i := range c.Impacts {
		e.Impacts = append(e.Impacts, Impact(i))
	}
	if c.Shown != nil {
		shown := NewEntry(c.Shown)
		e.shown = &shown
	}
	return e
}

// stepOf returns a step without the object that it made, and with its reason as a string.
func stepOf(s *engine.Step) engine.Step {
	out := *s
	out.After, out.Fields, out.Trigger = nil, nil, s.Trigger
	if s.Err != nil {
		out.Err = errors.New(s.Err.Error())
	}
	return out
}
