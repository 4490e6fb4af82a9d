package plugin

import (
	"errors"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report/formats"
)

// reported adds the error that ended a run to its reports, unless their objects have it
// already, writes the reports, and returns the exit code and error of the run. Reports that
// cannot be written leave a run incomplete.
func reported(r *formats.Results, code int, err error) (int, error) {
	for _, e := range engine.JoinedErrors(err) {
		var unwritable *apply.UnwritableError
		if errors.As(e, &unwritable) && r.TellErrors() {
			continue // a pipeline would count it twice
		}
		r.Trouble(e)
	}
	failed := r.Close()
	if failed == nil {
		return code, err
	}
	if code != ExitNothing {
		code = ExitIncomplete
	}
	return code, errors.Join(err, failed)
}
