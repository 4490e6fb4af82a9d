package flags

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Watch has the flags of a run that goes on with what changes.
type Watch struct {
	On     bool
	Listen string // HOST:PORT for metrics and readiness; empty for none
}

// AddFlag registers the flag; says is what the command does with changes.
func (f *Watch) AddFlag(flags *pflag.FlagSet, says string) {
	flags.BoolVarP(&f.On, "watch", "w", false, says)
}

// AddListenFlag registers the flag for metrics and readiness.
func (f *Watch) AddListenFlag(flags *pflag.FlagSet) {
	flags.StringVar(&f.Listen, "metrics-listen", "", "With --watch: HOST:PORT on which to serve OpenMetrics at /metrics, and at /readyz whether everything is watched. Without a HOST it is 127.0.0.1.")
}

// watchable are the fields of a field selector that no change of an object changes.
var watchable = []string{"metadata.name", "metadata.namespace"} //nolint:gochecknoglobals // an immutable table

// once are the flags of what is written at the end of a run.
var once = []string{"report", "save", "journal", "explain", "plan", "resume", "dry-run", "max-objects", "max-failures", "shard", "write-reports"} //nolint:gochecknoglobals // an immutable table

// Validate returns an error for flags that a watch cannot follow. Formats are those of -o that show one change after another.
func (f *Watch) Validate(set *pflag.FlagSet, e *Evaluate, format string, formats ...string) error {
	if f.Listen != "" {
		if _, _, err := net.SplitHostPort(f.Listen); err != nil {
			return fmt.Errorf("--metrics-listen %q: use HOST:PORT, such as 127.0.0.1:9090 or :9090", f.Listen)
		}
		if !f.On {
			return errors.New("--metrics-listen is for a run that goes on: add --watch, or use --metrics FILE")
		}
	}
	if !f.On {
		return nil
	}
	switch name := firstOf(set, once...); {
	case name != "":
		return fmt.Errorf("--%s is for one run: leave it out with --watch", name)
	case e.Objects.Offline():
		return errors.New("--watch follows a cluster: leave out -f/--filename and -k/--kustomize")
	case slices.Contains(e.Policies.Paths, stdio):
		return errors.New("--watch reads policies again when they change: name a file or directory, not -p -")
	case !slices.Contains(formats, format):
		return fmt.Errorf("-o %s shows a run as a whole: with --watch use one of %s", format, strings.Join(formats, ", "))
	}
	_, fields, err := e.Objects.Selectors()
	if err != nil || fields == nil {
		return err
	}
	for _, r := range fields.Requirements() {
		if !slices.Contains(watchable, r.Field) {
			return fmt.Errorf("--field-selector %s: an object that leaves the selection looks like a deleted one to a watch; use %s", r.Field, strings.Join(watchable, " or "))
		}
	}
	return nil
}
