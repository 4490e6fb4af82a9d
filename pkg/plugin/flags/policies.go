package flags

import (
	"errors"

	"github.com/spf13/pflag"
)

// Policies choose the policies.
type Policies struct {
	Paths       []string
	FromCluster bool
	Only, Skip  []string

	Recorded bool // those of a plan or a journal
}

// AddFlags registers the flags.
func (f *Policies) AddFlags(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&f.Paths, "policy", "p", nil, "File, directory or URL of policies, or - for standard input. May be given more than once; directories are read recursively.")
	flags.BoolVar(&f.FromCluster, "from-cluster", false, "Also take the policies that are installed in the cluster. A policy from a file takes the place of the installed one of the same name.")
	flags.StringSliceVar(&f.Only, "only", nil, "Evaluate these policies or rules alone: POLICY or POLICY/RULE.")
	flags.StringSliceVar(&f.Skip, "skip", nil, "Leave out these policies or rules: POLICY or POLICY/RULE.")
}

// Validate refuses a command line that names no policies.
func (f *Policies) Validate() error {
	if len(f.Paths) == 0 && !f.FromCluster && !f.Recorded {
		return errors.New("no policies: name files with -p/--policy, or use --from-cluster for those that are installed")
	}
	return nil
}
