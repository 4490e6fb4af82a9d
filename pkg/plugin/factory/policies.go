package factory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/dialects"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/input"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/policies"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
)

// PolicyReader reads and describes policies.
type PolicyReader struct {
	Policies flags.Policies
	Client   flags.Client
	Config   *genericclioptions.ConfigFlags
	// Cluster reads the installed policies; nil for a client of its own.
	Cluster *cluster.Client
}

// Described is a set of policies with their descriptions.
type Described struct {
	preview.Policies
	Descriptions []engine.Description // of the rules
	List         policies.List

	offline bool // nothing but Kubernetes' own kinds, and those of the files, is known
}

// Open returns a client that can only read.
func (f PolicyReader) Open() (*cluster.Client, error) {
	return cluster.New(f.Config, cluster.Options{
		QPS: f.Client.QPS, Burst: f.Client.Burst, ReadOnly: true, ChunkSize: flags.NewObjects().ChunkSize,
	})
}

// Read reads the policies. Problems of single policies are in the List; the error is that of
// the flags, of the cluster, or of missing policies.
func (f PolicyReader) Read(ctx context.Context, stdin io.Reader) (Described, error) {
	out := Described{Policies: preview.Policies{Dialects: dialects.All()}}
	out.Rules, out.Limits, out.Strict = f.Policies.Rules, engine.DefaultLimits(), f.Policies.Strict
	out.AssumeBinding = f.Policies.AssumeBinding
	if err := f.Policies.Validate(); err != nil {
		return out, err
	}
	accepts := besidePolicies(out.Dialects)
	builder := policies.NewBuilder()
	problem := func(s policies.Severity) func(origin, text string) {
		return func(origin, text string) { builder.Problem(s, fmt.Errorf("%s: %s", origin, text)) }
	}
	warning := policies.Warning
	if f.Policies.Strict {
		warning = policies.Error
	}
	source := input.Policies{
		Paths: f.Policies.Paths, Reader: &input.Reader{Stdin: stdin}, Accepts: accepts, Warn: problem(warning), Note: problem(policies.Warning),
	}
	if f.Policies.FromCluster && f.Cluster == nil {
		var err error
		if f.Cluster, err = f.Open(); err != nil {
			return out, err
		}
	}
	if f.Policies.FromCluster {
		source.FromCluster = func(ctx context.Context) ([]engine.Document, []error) {
			return f.Cluster.PolicyDocuments(ctx, accepts)
		}
	}
	documents, broken, err := source.Load(ctx)
	if err != nil {
		return out, err
	}
	for _, problem := range broken {
		builder.Problem(policies.Error, problem)
	}
	out.Documents = documents
	files := snapshot.Options{World: slices.DeleteFunc(slices.Clone(documents), isInstalled)}
	if f.Cluster != nil {
		if _, err := f.Cluster.Served(ctx); err != nil { // or else each policy would ask anew
			return out, err
		}
		files.Cluster = f.Cluster.Mapper()
	}
	kinds, err := snapshot.Load(nil, files)
	if err != nil {
		return out, err
	}
	out.offline = f.Cluster == nil
	builder.Mapper, out.CheckKind = kinds.Mapper(), checkKind(&f.Policies, kinds.CheckKind)
	if f.Cluster != nil {
		out.CheckKind = checkKind(&f.Policies, beside(ctx, f.Cluster, kinds))
	}
	return out, out.describe(builder)
}

// beside returns the check of kinds that a cluster or files have.
func beside(ctx context.Context, c *cluster.Client, files *snapshot.Snapshot) func(engine.KindName) error {
	return func(n engine.KindName) error {
		err := c.CheckKind(ctx, n)
		if err != nil && files.CheckKind(n) == nil {
			return nil
		}
		return err
	}
}

// checkKind returns the check of a compilation, with the kinds that the user takes for known.
func checkKind(f *flags.Policies, check func(engine.KindName) error) func(engine.KindName) error {
	if f.Recorded {
		return nil // it was checked when it was recorded
	}
	return func(n engine.KindName) error {
		if f.AllowsUnknown(n.Name()) || f.AllowsUnknown(n.String()) {
			return nil
		}
		return check(n)
	}
}

// describe compiles the policies as an evaluation does.
func (d *Described) describe(b *policies.Builder) error {
	b.CheckKind = d.CheckKind
	for _, dialect := range d.Dialects {
		for _, document := range d.Of(dialect) {
			if dialect.Accepts(document.Key.GroupKind) == engine.Policy {
				b.Policy(dialect.Name(), document)
			}
		}
	}
	d.Warn = func(w engine.CompileError) { b.Problem(policies.Severity(w.Severity()), &w) }
	programs, err := d.Compile(func(broken error) { b.Problem(d.severity(broken), broken) }, b.Idle)
	if err != nil {
		return err
	}
	for _, program := range programs {
		if describer, ok := program.(engine.Describer); ok {
			d.Descriptions = append(d.Descriptions, describer.Describe()...)
		}
	}
	for _, r := range d.Descriptions {
		b.Rule(r)
	}
	d.List = b.List()
	chosen := len(d.Rules.Only)+len(d.Rules.Skip) > 0
	d.List.Keep(func(p policies.Policy) bool {
		return len(p.Rules)+len(p.Problems) > 0 || !chosen && p.Origin != cluster.Origin
	})
	return nil
}

// severity returns how bad a problem is. Without a cluster a kind that is not known may be one
// that is installed there.
func (d *Described) severity(problem error) policies.Severity {
	var unknown *engine.UnknownKindError
	if d.offline && !d.Strict && errors.As(problem, &unknown) {
		return policies.Warning
	}
	return policies.Error
}

// Reads returns a function that reports whether a kind is read from the cluster as policies or
// their inputs: the inputs of the languages in use, or with fromCluster those of all languages.
func (d *Described) Reads(fromCluster bool) func(schema.GroupKind) bool {
	accepts := besidePolicies(d.Dialects)
	return func(gk schema.GroupKind) bool {
		if fromCluster {
			return accepts(gk) != engine.Foreign
		}
		for _, dialect := range d.Dialects {
			if dialect.Accepts(gk) == engine.Input && accepts(gk) == engine.Input && len(d.Of(dialect)) > 0 {
				return true
			}
		}
		return false
	}
}
