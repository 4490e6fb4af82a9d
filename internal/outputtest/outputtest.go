// Package outputtest has what the tests of printers share.
package outputtest

import (
	"errors"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

// Evaluated is the event of a change.
func Evaluated(c engine.Change) output.Event { return output.Evaluated{Change: &c} }

// Print prints changes, and returns their summary.
func Print(t *testing.T, p output.Printer, changes []engine.Change) *evaluation.Summary {
	t.Helper()
	var rules []engine.RuleRef
	for i := range changes {
		rules = append(rules, changes[i].Asked...)
	}
	summary := evaluation.NewSummary(rules)
	for i := range changes {
		summary.Add(&changes[i])
		if err := p.Print(output.Evaluated{Change: &changes[i]}); err != nil {
			t.Fatal(err)
		}
	}
	return summary
}

// End prints the summary and closes the printer, as a run that comes to its end does.
func End(p output.Printer, s evaluation.Summary) error {
	return errors.Join(p.Print(output.Summary{Summary: s}), p.Close())
}

// Printer is a printer that shows events with a format, without what is secret.
func Printer(f output.Format) output.Printer { return output.NewPrinter(f, false) }
