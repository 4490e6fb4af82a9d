package plugin

import (
	"errors"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
)

// written returns a function that prints the outcome of each object that was to be
// written.
func written(p output.Printer) func(*apply.Result) error {
	return func(r *apply.Result) error { return p.Print(output.Written{Result: r}) }
}

// printProblems prints what went wrong beside the objects.
func printProblems(p output.Printer, problems []error) error {
	for _, err := range problems {
		if err := p.Print(output.Problem{Err: err}); err != nil {
			return err
		}
	}
	return nil
}

// reported adds the error that ended a run to its reports, unless their objects have it
// already, writes the reports, and returns the exit code and error of the run. Reports that
// cannot be written leave a run incomplete.
func reported(r *formats.Reports, code int, err error) (int, error) {
	var problems []error
	for _, e := range engine.JoinedErrors(err) {
		var unwritable *apply.UnwritableError
		if errors.As(e, &unwritable) && r.HasErrors() {
			continue // a pipeline would count it twice
		}
		problems = append(problems, e)
	}
	failed := errors.Join(printProblems(r, problems), r.Close())
	if failed == nil {
		return code, err
	}
	if code != ExitNothing {
		code = ExitIncomplete
	}
	return code, errors.Join(err, failed)
}
