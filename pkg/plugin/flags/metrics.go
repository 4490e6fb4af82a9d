package flags

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
)

// Metrics names the file for the metrics of a run.
type Metrics struct{ File string }

// AddFlags registers the flag.
func (f *Metrics) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.File, "metrics", "", "File to write OpenMetrics text to at the end of the run: objects changed, failed and skipped by policy, rule, kind and namespace.")
}

// Validate returns an error for a file that cannot be written, before anything is done.
func (f *Metrics) Validate() error {
	if f.File == "" {
		return nil
	}
	if f.File == stdio {
		return errors.New("--metrics needs the name of a file: standard output is not supported")
	}
	if err := file.Check(f.File, file.Shared); err != nil {
		return fmt.Errorf("--metrics: %w", err)
	}
	return nil
}
