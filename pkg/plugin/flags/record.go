package flags

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// Record name a record of what is to be written.
type Record struct {
	Plan       string
	PlanMaxAge time.Duration
	Resume     string
}

// NewRecord returns the defaults.
func NewRecord() Record { return Record{PlanMaxAge: plan.DefaultMaxAge} }

// AddFlags registers the flags.
func (f *Record) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.Plan, "plan", "", "Make exactly the changes of this plan, which preview --save has written, and ask nothing. An object that has drifted from it is left as it is.")
	flags.DurationVar(&f.PlanMaxAge, "plan-max-age", f.PlanMaxAge, "How old the plan may be.")
	flags.StringVar(&f.Resume, "resume", "", "Go on with the run that this journal is of, which was cut off.")
}

// Given tells whether there is a record.
func (f *Record) Given() bool { return f.Plan != "" || f.Resume != "" }

// settled are the flags that a record has settled: to type one beside it can only
// be a mistake.
var settled = []string{ //nolint:gochecknoglobals // an immutable table
	"policy", "from-cluster", "only", "skip", "values", "all-namespaces", "selector", "field-selector",
	"operation", "request-user", "request-group", "annotate", "namespace",
}

// Check refuses what a record has settled.
func (f *Record) Check(flags *pflag.FlagSet, args []string) error {
	name := "--plan"
	if f.Resume != "" {
		name = "--resume"
	}
	if f.Plan != "" && f.Resume != "" {
		return errors.New("--plan begins a run and --resume goes on with one: choose one of them")
	}
	if len(args) > 0 {
		return fmt.Errorf("%s: what is written is what was planned; leave out %q", name, args[0])
	}
	var err error
	flags.Visit(func(flag *pflag.Flag) {
		if slices.Contains(settled, flag.Name) && err == nil {
			err = fmt.Errorf("%s: what is written is what was planned; leave out --%s", name, flag.Name)
		}
	})
	return err
}
