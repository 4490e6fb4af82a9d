package plan

import (
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// Masked is the entry as it may be shown. A nil masker
// leaves everything in.
func (e Entry) Masked(m *redact.Masker) Entry {
	if m == nil {
		return e
	}
	if e.shown != nil {
		e.Object, e.Partial, e.Steps, e.Impacts, e.shown = e.shown.Object, e.shown.Partial, e.shown.Steps, e.shown.Impacts, nil
	}
	e.Partial = redact.Partial(m, e.Partial, e.Object)
	e.Steps = slices.Clone(e.Steps)
	for i := range e.Steps {
		e.Steps[i] = redact.Step(&e.Steps[i])
	}
	return e
}
