package plugin

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/metrics"
)

// MetricsFlags say where the numbers of a run go.
type MetricsFlags struct{ File string }

// AddFlags registers the flag.
func (f *MetricsFlags) AddFlags(c *cobra.Command) {
	c.Flags().StringVar(&f.File, "metrics", "", "File to write OpenMetrics text to at the end of the run: objects changed, failed and skipped by policy, rule, kind and namespace.")
}

// Validate refuses a file that cannot be written, before anything is done.
func (f *MetricsFlags) Validate() error {
	if f.File == "" {
		return nil
	}
	if err := metrics.CheckFile(f.File); err != nil {
		return fmt.Errorf("--metrics: %w", err)
	}
	return nil
}

// Metering counts a run for --metrics.
type Metering struct {
	*metrics.Run // nil counts nothing
	File         string
}

// metering begins to count a command's run, if that was asked for.
func (f *MetricsFlags) metering(c *cobra.Command) Metering {
	if f.File == "" {
		return Metering{}
	}
	return Metering{Run: metrics.New(c.Name(), Version()), File: f.File}
}

// finish writes the numbers, also those of a run that broke off, and returns how
// the run ends. Numbers that cannot be written leave a run incomplete.
func (m Metering) finish(code int, err error) (int, error) {
	if m.Run == nil {
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
