package plugin

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/metrics"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/version"
)

// Metering counts a run for --metrics.
type Metering struct {
	*metrics.Run        // nil counts nothing
	File         string // "" where the counts are a part of those of several clusters
}

// metering starts to count a command's run, if --metrics is set, or a watch, if that or --metrics-listen is; waiting counts its events.
func metering(file, listen string, c *cobra.Command, waiting func() int) Metering {
	switch {
	case file == "" && listen == "":
		return Metering{}
	case waiting != nil:
		return Metering{Run: metrics.NewWatch(c.Name(), version.Release(), waiting), File: file}
	}
	return Metering{Run: metrics.New(c.Name(), version.Release()), File: file}
}

// finish writes the metrics, also those of a run that failed, and returns the exit code and
// error of the run. Metrics that cannot be written leave a run incomplete.
func (m Metering) finish(code int, err error) (int, error) {
	var failed error
	if m.File != "" {
		failed = m.WriteFile(m.File)
	}
	return lost(code, err, failed)
}

// lost returns the exit code and error of a run of which something could not be written, if there is an error of that, or which
// was interrupted.
func lost(code int, err, failed error) (int, error) {
	switch {
	case interrupted(err):
		code = ExitInterrupted
	case failed != nil && code != ExitNothing:
		code = ExitIncomplete
	}
	return code, errors.Join(err, failed)
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
