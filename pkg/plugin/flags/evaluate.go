package flags

import (
	"errors"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// Evaluate has the flags that preview and apply-existing share.
type Evaluate struct {
	Policies Policies
	Objects  Objects
	Canary   Canary
	Context  Context
	Client   Client
	Metrics  Metrics
	// Annotate leaves Kyverno's annotation on the targets of mutate-existing rules.
	Annotate bool
	// EngineView reports what an engine in the cluster would write otherwise.
	EngineView bool
	// Quiet leaves out progress, notices and warnings on standard error.
	Quiet  bool
	Config *genericclioptions.ConfigFlags
	// Secrets masks the values of Secrets.
	Secrets *redact.Masker
}

// NewEvaluate returns the defaults. Config holds the flags by which kubectl
// itself finds a cluster; they are registered elsewhere, for all commands.
func NewEvaluate(config *genericclioptions.ConfigFlags, secrets *redact.Masker) Evaluate {
	return Evaluate{Objects: NewObjects(), Annotate: true, Config: config, Secrets: secrets}
}

// AddFlags registers the flags.
func (f *Evaluate) AddFlags(flags *pflag.FlagSet) {
	f.AddInputFlags(flags)
	f.Policies.AddStrictFlag(flags)
	f.Metrics.AddFlags(flags)
	flags.BoolVar(&f.Annotate, "annotate", f.Annotate, "With each change to the target of a mutate-existing rule, add a line to its annotation policies.kyverno.io/last-applied-patches.")
	flags.BoolVar(&f.EngineView, "engine-view", false, "Report each field that Kyverno 1.19 would write differently from what its documentation says, and what it would write, where that is known.")
}

// AddInputFlags registers the flags that say what is evaluated.
func (f *Evaluate) AddInputFlags(flags *pflag.FlagSet) {
	f.Policies.AddFlags(flags)
	f.Objects.AddFlags(flags)
	f.Context.AddFlags(flags)
	f.Client.AddFlags(flags)
	f.AddQuietFlag(flags)
}

// AddQuietFlag registers the flag of the commands that show progress.
func (f *Evaluate) AddQuietFlag(flags *pflag.FlagSet) {
	flags.BoolVarP(&f.Quiet, "quiet", "q", false, "Print no progress and no warnings on standard error, only errors.")
}

// Validate returns an error for flags that contradict each other.
func (f *Evaluate) Validate() error {
	if err := f.Policies.Validate(); err != nil {
		return err
	}
	if err := f.Canary.Validate(); err != nil {
		return err
	}
	if f.Objects.Offline() && f.Policies.FromCluster {
		return errors.New("--from-cluster cannot be used with -f/--filename or -k/--kustomize, which need no cluster")
	}
	if err := ValidateNamespaces(f.Objects.Namespaces, f.Config); err != nil {
		return err
	}
	if err := f.Metrics.Validate(); err != nil {
		return err
	}
	return f.Objects.Validate()
}
