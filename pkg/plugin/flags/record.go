package flags

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// Record names a plan or journal whose changes are to be written.
type Record struct {
	Plan       string
	PlanMaxAge time.Duration
	Resume     string
}

// NewRecord returns the defaults.
func NewRecord() Record { return Record{PlanMaxAge: plan.DefaultMaxAge} }

// AddFlags registers the flags.
func (f *Record) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.Plan, "plan", "", "Make exactly the changes of this plan, which preview --save has written, without a prompt. An object that has drifted from it is skipped. Of a directory all plans, cluster by cluster.")
	flags.DurationVar(&f.PlanMaxAge, "plan-max-age", f.PlanMaxAge, "Maximum age of the plan.")
	flags.StringVar(&f.Resume, "resume", "", "Continue an interrupted run: show what is left, ask, and write. The ID of the run, its journal, or latest; or the directory of --plan.")
}

// Given reports whether a plan or a journal is given.
func (f *Record) Given() bool { return f.Plan != "" || f.Resume != "" }

// settled are the flags that a plan or journal has settled: to set one of them can only be a
// mistake.
var settled = []string{ //nolint:gochecknoglobals // an immutable table
	"policy", "from-cluster", "only", "skip", "values", "all-namespaces", "namespaces", "selector", "field-selector",
	"world", "operation", "request-user", "request-group", "annotate", "assume-binding", "namespace",
	"max-objects", "percent", "percent-seed", "shard",
}

// Check returns an error for flags and arguments that the plan or journal has settled.
func (f *Record) Check(flags *pflag.FlagSet, args []string) error {
	name := "--plan"
	if f.Resume != "" {
		name = "--resume"
	}
	if f.Plan != "" && f.Resume != "" {
		return errors.New("only one of --plan and --resume can be used")
	}
	if len(args) > 0 {
		return fmt.Errorf("%s writes exactly what was planned: leave out %q", name, args[0])
	}
	var err error
	flags.Visit(func(flag *pflag.Flag) {
		if slices.Contains(settled, flag.Name) && err == nil {
			err = fmt.Errorf("%s writes exactly what was planned: leave out --%s", name, flag.Name)
		}
	})
	return err
}
