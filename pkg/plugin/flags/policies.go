package flags

import (
	"errors"
	"slices"

	"github.com/spf13/pflag"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Policies has the flags that choose the policies.
type Policies struct {
	Paths       []string
	FromCluster bool
	Rules       engine.RuleFilter
	// UnknownKinds are patterns of kinds and resources that policies may name although there are
	// none.
	UnknownKinds []string
	// AssumeBinding evaluates MutatingAdmissionPolicies that nothing binds.
	AssumeBinding bool
	Strict        bool // a warning of a policy is an error
	Recorded      bool // those of a plan or a journal
}

// AddFlags registers the flags.
func (f *Policies) AddFlags(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&f.Paths, "policy", "p", nil, "File, directory or URL of policies, or - for standard input. May be given more than once; directories are read recursively.")
	flags.BoolVar(&f.FromCluster, "from-cluster", false, "Also use the policies that are installed in the cluster. A policy from a file replaces the installed one of the same name.")
	flags.StringSliceVar(&f.Rules.Only, "only", nil, "Evaluate only these policies or rules: POLICY or POLICY/RULE.")
	flags.StringSliceVar(&f.Rules.Skip, "skip", nil, "Leave out these policies or rules: POLICY or POLICY/RULE.")
	flags.BoolVar(&f.AssumeBinding, "assume-binding", false, "Evaluate MutatingAdmissionPolicies without a binding, installed ones too, as if they were bound to everything that they match.")
	flags.StringSliceVar(&f.UnknownKinds, "allow-unknown-kinds", nil, "Kinds or resources that policies may name although there are none, such as those of custom resources that are not installed: KIND or RESOURCE, with * for any text. Any other that is unknown is an error of its policy.")
}

// AddStrictFlag registers the flag of the commands that warn about policies.
func (f *Policies) AddStrictFlag(flags *pflag.FlagSet) {
	flags.BoolVar(&f.Strict, "strict", false, "Take warnings about policies for errors (exit code 3): deprecated versions, documents that are no policies, rules that match no object or warn about one.")
}

// AllowsUnknown reports whether a policy may name a kind or resource that there is not.
func (f *Policies) AllowsUnknown(name string) bool {
	return slices.ContainsFunc(f.UnknownKinds, func(pattern string) bool { return selector.MatchWildcard(pattern, name) })
}

// Validate returns an error if no policies are given.
func (f *Policies) Validate() error {
	if len(f.Paths) == 0 && !f.FromCluster && !f.Recorded {
		return errors.New("no policies: use -p/--policy for files, or --from-cluster for those that are installed")
	}
	return nil
}
