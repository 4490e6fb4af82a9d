// Package outputtest has what the tests of printers share.
package outputtest

import (
	"errors"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

// Evaluated is the event of a change.
func Evaluated(c engine.Change) output.Event { return output.Evaluated{Change: &c} }

// End prints the summary and closes the printer, as a run that comes to its end does.
func End(p output.Printer, s evaluation.Summary) error {
	return errors.Join(p.Print(output.Summary{Summary: s}), p.Close())
}
