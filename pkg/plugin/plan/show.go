package plan

import (
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Change is the entry as an evaluation handed it out, for printers: its objects
// hold what the change touches and their identity, no more.
func (e *Entry) Change() engine.Change {
	c := e.Partial.Change(e.Object)
	c.Scoped = e.Scoped
	c.Steps = slices.Clone(e.Steps)
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Outcome == engine.Changed {
			s.After = c.After
		}
	}
	for _, i := range e.Impacts {
		c.Impacts = append(c.Impacts, engine.Impact(i))
	}
	if e.shown != nil {
		shown := e.shown.Change()
		c.Shown = &shown
	}
	return c
}
