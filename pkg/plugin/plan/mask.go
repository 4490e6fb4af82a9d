package plan

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// Masked is the entry without what the masker knows to be secret. A nil masker
// leaves everything in.
func (e Entry) Masked(m *redact.Masker) Entry {
	if m == nil {
		return e
	}
	if e.shown != nil {
		e.Object, e.Partial, e.Steps, e.Impacts, e.shown = e.shown.Object, e.shown.Partial, e.shown.Steps, e.shown.Impacts, nil
		e.MethodReason = m.Text(e.MethodReason)
	}
	e.Partial = redact.Partial(m, e.Partial, e.Object)
	steps := make([]engine.Step, len(e.Steps))
	for i := range e.Steps {
		steps[i] = redact.Step(m, &e.Steps[i])
	}
	e.Steps = steps
	impacts := make([]Impact, len(e.Impacts))
	for i, impact := range e.Impacts {
		impacts[i] = impact.masked(m.Text, m.Path)
	}
	e.Impacts = impacts
	return e
}
