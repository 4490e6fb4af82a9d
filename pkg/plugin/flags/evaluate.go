// Package flags defines the flags that commands share, with their defaults and contradictions.
package flags

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
)

// Evaluate has the flags that preview and apply-existing share.
type Evaluate struct {
	Policies Policies
	Objects  Objects
	Canary   Canary
	Context  Context
	Client   Client
	Metrics  string // the file for the metrics of a run
	// Annotate leaves Kyverno's annotation on the targets of mutate-existing rules.
	Annotate bool
	// EngineView reports fields that an engine in the cluster would write differently.
	EngineView bool
	// Expand also evaluates the Pods that controllers would create for workloads.
	Expand bool
	// Quiet leaves out progress, notices and warnings on standard error.
	Quiet      bool
	Config     *genericclioptions.ConfigFlags
	Streams    genericiooptions.IOStreams
	Interrupts *write.Interrupts // may be nil
}

// NewEvaluate returns the defaults. Config holds kubectl's own flags, which the root command registers.
func NewEvaluate(config *genericclioptions.ConfigFlags) Evaluate {
	return Evaluate{Objects: NewObjects(), Annotate: true, Config: config}
}

// AddFlags registers the flags.
func (f *Evaluate) AddFlags(flags *pflag.FlagSet) {
	f.AddInputFlags(flags)
	f.Policies.AddStrictFlag(flags)
	flags.StringVar(&f.Metrics, "metrics", "", "File to write OpenMetrics text to at the end of the run: objects changed, failed and skipped by policy, rule, kind and namespace.")
	flags.BoolVar(&f.Annotate, "annotate", f.Annotate, "With each change to the target of a mutate-existing rule, add a line to its annotation policies.kyverno.io/last-applied-patches.")
	flags.BoolVar(&f.EngineView, "engine-view", false, "Report each field that Kyverno 1.19 would write differently from what its documentation says, and what it would write, where that is known.")
}

// AddInputFlags registers the flags that choose what is evaluated.
func (f *Evaluate) AddInputFlags(flags *pflag.FlagSet) {
	f.Policies.AddFlags(flags)
	f.Objects.AddFlags(flags)
	f.Context.AddFlags(flags)
	f.Client.AddFlags(flags)
	f.AddQuietFlag(flags)
}

// AddExpandFlag registers the flag of the commands that only show what policies do.
func (f *Evaluate) AddExpandFlag(flags *pflag.FlagSet) {
	flags.BoolVar(&f.Expand, "expand", false, "Also evaluate the Pods that controllers would create for the workloads: Deployments, StatefulSets, DaemonSets, Jobs, CronJobs, and ReplicaSets and ReplicationControllers by themselves.")
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
		return errors.New("--from-cluster cannot be used with -f/--filename, -k/--kustomize or --offline, which need no cluster")
	}
	if err := f.Objects.ValidateNames(f.Config); err != nil {
		return err
	}
	if f.Expand && strings.EqualFold(f.Objects.Operation, string(engine.OperationDelete)) {
		return errors.New("--expand shows what is created for workloads: it cannot be used with --operation DELETE, which deletes them")
	}
	if f.Metrics == stdio {
		return errors.New("--metrics needs the name of a file: standard output is not supported")
	}
	if f.Metrics != "" { // before anything is done
		if err := file.Check(f.Metrics, file.Shared); err != nil {
			return fmt.Errorf("--metrics: %w", err)
		}
	}
	return f.Objects.Validate()
}

// Context has the flags for what policies may read besides objects.
type Context struct {
	Values        string
	AllowHTTP     bool
	AllowRegistry bool
}

// AddFlags registers the flags.
func (f *Context) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.Values, "values", "", "File of values for what policies read, in the format of the Kyverno CLI (kind Values): variables, labels of Namespaces, API responses.")
	f.AddAccessFlags(flags)
}

// AddAccessFlags registers the flags that let policies ask other services.
func (f *Context) AddAccessFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&f.AllowHTTP, "allow-http", false, "Let policies call the web services that they name. Your cluster credentials are never sent.")
	flags.BoolVar(&f.AllowRegistry, "allow-registry", false, "Let policies look up images in their registries, with the credentials of your docker configuration.")
}

// Client limits the requests to the API server. The zero value leaves that to API Priority and Fairness, or
// without it to the defaults of cluster.Options.
type Client struct {
	QPS   float32
	Burst int
}

// AddFlags registers the flags.
func (f *Client) AddFlags(flags *pflag.FlagSet) {
	flags.Float32Var(&f.QPS, "kube-api-qps", f.QPS, "Average number of requests per second to the API server. "+
		"By default there is no limit where the server has API Priority and Fairness, and else one of 50.")
	flags.IntVar(&f.Burst, "kube-api-burst", f.Burst, "Number of requests to the API server that may exceed the average at once; 300 by default.")
}

// Canary has the flags that restrict a run to some objects.
type Canary struct {
	MaxObjects, Percent int
	PercentSeed         string
	Shard               engine.Shard
}

// AddFlags registers the flags.
func (f *Canary) AddFlags(flags *pflag.FlagSet) {
	flags.IntVar(&f.MaxObjects, "max-objects", 0, "Maximum number of objects to change; the run stops before it exceeds it.")
	flags.IntVar(&f.Percent, "percent", 0, "Evaluate this percentage of the objects, from 1 to 100: the same ones in each run, those of 10 among those of 20.")
	flags.StringVar(&f.PercentSeed, "percent-seed", "", "Any text; another one chooses other objects for --percent.")
}

// AddShardFlag registers the flag of a run that is one of several shards.
func (f *Canary) AddShardFlag(flags *pflag.FlagSet) {
	flags.TextVar(&f.Shard, "shard", f.Shard, "Evaluate one of several parts of the objects, as INDEX/COUNT, such as 0/4: those of the namespaces whose 64-bit FNV-1a modulo COUNT is INDEX, and by their own names those without a namespace.")
}

// Validate returns an error for values that choose nothing.
func (f *Canary) Validate() error {
	switch {
	case f.MaxObjects < 0:
		return fmt.Errorf("--max-objects %d: must not be negative", f.MaxObjects)
	case f.Percent < 0 || f.Percent > 100:
		return fmt.Errorf("--percent %d: must be between 1 and 100", f.Percent)
	case f.PercentSeed != "" && f.Percent == 0:
		return fmt.Errorf("--percent-seed %s: is for --percent, which is missing", f.PercentSeed)
	}
	return nil
}

// Variants has the flags for the generated objects on which policies are compared.
type Variants struct {
	Variants int // at most so many
	Seed     uint64
}

// AddFlags registers the flags; usage says what --variants is for.
func (f *Variants) AddFlags(flags *pflag.FlagSet, usage string) {
	flags.IntVar(&f.Variants, "variants", f.Variants, usage)
	flags.Uint64Var(&f.Seed, "seed", 1, "Chooses which differences the variants combine; the same seed gives the same variants.")
}

// Check returns an error for a negative number.
func (f *Variants) Check() error {
	if f.Variants < 0 {
		return fmt.Errorf("--variants %d: must not be negative", f.Variants)
	}
	return nil
}
