package flags

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Policies has the flags that choose the policies.
type Policies struct {
	Paths       []string
	FromCluster bool
	Rules       engine.RuleFilter
	Recorded    bool // those of a plan or a journal
}

// AddFlags registers the flags.
func (f *Policies) AddFlags(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&f.Paths, "policy", "p", nil, "File, directory or URL of policies, or - for standard input. May be given more than once; directories are read recursively.")
	flags.BoolVar(&f.FromCluster, "from-cluster", false, "Also use the policies that are installed in the cluster. A policy from a file replaces the installed one of the same name.")
	flags.StringSliceVar(&f.Rules.Only, "only", nil, "Evaluate only these policies or rules: POLICY or POLICY/RULE.")
	flags.StringSliceVar(&f.Rules.Skip, "skip", nil, "Leave out these policies or rules: POLICY or POLICY/RULE.")
}

// Validate returns an error if no policies are given.
func (f *Policies) Validate() error {
	if len(f.Paths) == 0 && !f.FromCluster && !f.Recorded {
		return errors.New("no policies: use -p/--policy for files, or --from-cluster for those that are installed")
	}
	return nil
}
