package factory

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/dialects"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/catalog"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/evaluate"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/input"
)

// Described is a set of policies with their descriptions.
type Described struct {
	evaluate.Policies
	Descriptions []engine.Description // of the rules
	List         catalog.List
	// Unknown has the errors of policies that name kinds which only a cluster knows, without a cluster.
	Unknown []error
	// Mapper, Served and HasStatus know the kinds of the cluster, or else those of Kubernetes and of files.
	Mapper    meta.RESTMapper
	Served    []*meta.RESTMapping
	HasStatus func(schema.GroupVersionKind) bool

	offline bool // only kinds of Kubernetes and of files are known
}

// Describe reads and describes the policies. Problems of single policies are in the List; it fails for
// errors of the cluster and without policies.
func (f *Factory) Describe(ctx context.Context) (Described, error) {
	out := Described{Policies: evaluate.Policies{Dialects: dialects.All()}, offline: f.Client == nil}
	out.Rules, out.Strict, out.AssumeBinding = f.Policies.Rules, f.Policies.Strict, f.Policies.AssumeBinding
	accepts := besidePolicies(out.Dialects)
	builder := catalog.NewBuilder()
	problem := func(s catalog.Severity) func(origin, text string) {
		return func(origin, text string) { builder.Problem(s, fmt.Errorf("%s: %s", origin, text)) }
	}
	warning := catalog.Warning
	if f.Policies.Strict {
		warning = catalog.Error
	}
	documents, broken, err := loadPolicies(ctx, &f.Policies, f.Client, input.Policies{
		Reader: f.reader, Accepts: accepts, Warn: problem(warning), Note: problem(catalog.Warning),
	})
	if err != nil {
		return out, err
	}
	for _, problem := range broken {
		builder.Problem(catalog.Error, problem)
	}
	out.Documents = documents
	files := snapshot.Options{World: slices.DeleteFunc(slices.Clone(documents), isInstalled)}
	if f.Client != nil {
		if out.Served, err = f.Client.Served(ctx); err != nil { // otherwise each policy would ask again
			return out, err
		}
		files.Cluster = f.Client.Mapper()
	} else {
		paths := slices.Concat(f.Objects.Filenames, f.Objects.World)
		from := input.Files{Paths: paths, Recursive: f.Objects.Recursive}
		add := func(d engine.Document) { files.World = append(files.World, d) }
		if err := f.readObjects(ctx, from, add); err != nil {
			return out, err
		}
	}
	kinds, err := snapshot.Load(nil, files)
	if err != nil {
		return out, err
	}
	if out.Mapper, out.HasStatus = kinds.Mapper(), kinds.HasStatus; f.Client == nil {
		out.Served = kinds.Served()
	} else {
		out.Mapper, out.HasStatus = f.Client.Mapper(), func(gvk schema.GroupVersionKind) bool {
			has, err := f.Client.HasStatus(ctx, gvk)
			return has && err == nil // the kinds have been read; a missing one has no status
		}
	}
	builder.Mapper, out.CheckKind = kinds.Mapper(), checkKind(ctx, &f.Policies, kinds, f.Client, documents)
	return out, out.describe(builder)
}

// loadPolicies reads the policies that flags name, with a client for installed ones.
func loadPolicies(ctx context.Context, named *flags.Policies, c *cluster.Client,
	from input.Policies,
) ([]engine.Document, []error, error) {
	if from.Paths = named.Paths; named.FromCluster {
		from.FromCluster = func(ctx context.Context) ([]engine.Document, []error) {
			return c.PolicyDocuments(ctx, from.Accepts)
		}
	}
	return from.Load(ctx)
}

// checkKind returns the check of kinds in a compilation: known are those of files, of a cluster if there is
// one, of --allow-unknown-kinds, and of the policies themselves.
func checkKind(ctx context.Context, f *flags.Policies, files *snapshot.Snapshot, c *cluster.Client,
	policies []engine.Document,
) func(engine.KindName) error {
	if f.Recorded {
		return nil // checked when it was recorded
	}
	var own engine.Kinds
	for _, d := range policies {
		resource, _ := meta.UnsafeGuessKindToResource(d.Key.GroupVersionKind())
		known := engine.KnownKind{GroupVersionKind: d.Key.GroupVersionKind(), Resource: resource.Resource}
		if !slices.ContainsFunc(own.Known, func(k engine.KnownKind) bool {
			return k.GroupVersionKind == known.GroupVersionKind
		}) {
			own.Known = append(own.Known, known)
		}
	}
	return func(n engine.KindName) error {
		if own.Check(n) == nil || f.AllowsUnknown(n.Name()) || f.AllowsUnknown(n.String()) || c != nil &&
			files != nil && files.CheckKind(n) == nil {
			return nil
		}
		if c != nil {
			return c.CheckKind(ctx, n)
		}
		return files.CheckKind(n)
	}
}

// describe compiles the policies as an evaluation does.
func (d *Described) describe(b *catalog.Builder) error {
	b.CheckKind = d.CheckKind
	for _, dialect := range d.Dialects {
		for _, document := range d.Of(dialect) {
			if dialect.Accepts(document.Key.GroupKind) == engine.Policy {
				b.Policy(dialect.Name(), document)
			}
		}
	}
	d.Warn = func(w engine.CompileError) { b.Problem(catalog.Severity(w.Severity()), &w) }
	programs, err := d.Compile(func(broken error) {
		severity := catalog.Error
		if unknown := (*engine.UnknownKindError)(nil); d.offline && !d.Strict && errors.As(broken, &unknown) {
			severity = catalog.Warning // it may be installed in a cluster
			d.Unknown = append(d.Unknown, broken)
		}
		b.Problem(severity, broken)
	}, b.Idle)
	if err != nil {
		return err
	}
	d.Descriptions = evaluate.Describe(programs)
	for _, r := range d.Descriptions {
		b.Rule(r)
	}
	d.List = b.List()
	chosen := len(d.Rules.Only)+len(d.Rules.Skip) > 0
	d.List.Policies = slices.DeleteFunc(d.List.Policies, func(p catalog.Policy) bool {
		return len(p.Rules)+len(p.Problems) == 0 && (chosen || p.Origin == cluster.Origin)
	})
	return nil
}

// Reads returns a function that reports whether a kind is read from the cluster as policies or their inputs:
// inputs of the languages in use, or with fromCluster of all languages.
func (d *Described) Reads(fromCluster bool) func(schema.GroupKind) bool {
	role := inputs(&d.Policies)
	if fromCluster {
		role = besidePolicies(d.Dialects)
	}
	return func(gk schema.GroupKind) bool { return role(gk) != engine.Foreign }
}
