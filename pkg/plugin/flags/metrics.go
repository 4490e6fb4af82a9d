package flags

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
)

// Metrics say where the numbers of a run go.
type Metrics struct{ File string }

// AddFlags registers the flag.
func (f *Metrics) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.File, "metrics", "", "File to write OpenMetrics text to at the end of the run: objects changed, failed and skipped by policy, rule, kind and namespace.")
}

// Validate refuses a file that cannot be written, before anything is done.
func (f *Metrics) Validate() error {
	if f.File == "" {
		return nil
	}
	if f.File == stdio {
		return errors.New("--metrics: metrics are a file, which another program collects; name one")
	}
	if err := file.Check(f.File); err != nil {
		return fmt.Errorf("--metrics: %w", err)
	}
	return nil
}
