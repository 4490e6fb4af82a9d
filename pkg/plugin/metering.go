package plugin

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/metrics"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/version"
)

// Metering counts a run for --metrics.
type Metering struct {
	*metrics.Run        // nil counts nothing
	File         string // "" where the counts are a part of those of several clusters
}

// metering starts to count a command's run, if --metrics is set.
func metering(file string, c *cobra.Command) Metering {
	if file == "" {
		return Metering{}
	}
	return Metering{Run: metrics.New(c.Name(), version.Release()), File: file}
}

// meteringWatch starts to count a watch, if --metrics or --metrics-listen is set.
func meteringWatch(file, listen string, c *cobra.Command, waiting func() int) Metering {
	if file == "" && listen == "" {
		return Metering{}
	}
	return Metering{Run: metrics.NewWatch(c.Name(), version.Release(), waiting), File: file}
}

// finish writes the metrics, also those of a run that failed, and returns the exit code and
// error of the run. Metrics that cannot be written leave a run incomplete.
func (m Metering) finish(code int, err error) (int, error) {
	if m.File == "" {
		return code, err
	}
	failed := m.WriteFile(m.File)
	if failed == nil {
		return code, err
	}
	if code != ExitNothing {
		code = ExitIncomplete
	}
	return code, errors.Join(err, failed)
}
