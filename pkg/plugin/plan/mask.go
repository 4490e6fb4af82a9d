package plan

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// Masked is the entry without what the masker knows to be secret. A nil masker
// leaves everything in.
func (e Entry) Masked(m *redact.Masker) Entry {
	if m == nil {
		return e
	}
	e.Partial = redact.Partial(m, e.Partial, e.Object)
	steps := make([]Step, len(e.Steps))
	for i, s := range e.Steps {
		s.Reason, s.NotIdempotent = m.Text(s.Reason), m.Text(s.NotIdempotent)
		warnings := make([]string, len(s.Warnings))
		for j, w := range s.Warnings {
			warnings[j] = m.Text(w)
		}
		s.Warnings = warnings
		steps[i] = s
	}
	e.Steps = steps
	impacts := make([]Impact, len(e.Impacts))
	for i, impact := range e.Impacts {
		impacts[i] = impact.masked(m.Text, m.Path)
	}
	e.Impacts = impacts
	return e
}
