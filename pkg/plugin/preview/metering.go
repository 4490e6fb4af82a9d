package preview

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/metrics"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
)

// Metering counts a run for --metrics.
type Metering struct {
	*metrics.Run        // may be nil
	File         string // "" if the counts are part of a run on several clusters
}

// NewMetering starts to count a run for --metrics, or a watch for --metrics-listen too; left returns the
// number of its waiting events, and of objects whose changes are pending or refused.
func NewMetering(file, listen string, c *cobra.Command,
	left func() (waiting, pending, refused int),
) Metering {
	switch {
	case file == "" && listen == "":
		return Metering{}
	case left != nil:
		return Metering{Run: metrics.NewWatch(c.Name(), process.Release(), left), File: file}
	}
	return Metering{Run: metrics.New(c.Name(), process.Release()), File: file}
}

// Finish writes the metrics, even of a run that failed, and returns the exit code and error of the run.
// Metrics that cannot be written leave a run incomplete.
func (m Metering) Finish(code int, err error) (int, error) {
	var failed error
	if m.File != "" {
		failed = m.WriteFile(m.File)
	}
	return ExitAfterWriting(code, err, failed)
}

// ExitAfterWriting returns the exit code and error of a run that then wrote reports or metrics. An error of
// that writing, failed, leaves the run incomplete, unless nothing was done at all. The code of an
// interrupted run is process.ExitInterrupted.
func ExitAfterWriting(code int, err, failed error) (int, error) {
	switch {
	case process.Interrupted(err):
		code = process.ExitInterrupted
	case failed != nil && code != process.ExitNothing:
		code = process.ExitIncomplete
	}
	return code, errors.Join(err, failed)
}

// PrintProblems prints errors that are not about objects.
func PrintProblems(p output.Printer, problems []error) error {
	for _, err := range problems {
		if err := p.Print(output.Problem{Err: err}); err != nil {
			return err
		}
	}
	return nil
}
