package plugin

import (
	"errors"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/report/formats"
)

// reported tells the reports of a run that writes why it broke off, writes them, and
// returns how the run ends. Reports that cannot be written leave a run incomplete.
func reported(r *formats.Results, code int, err error) (int, error) {
	if err != nil {
		r.Trouble(err)
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
