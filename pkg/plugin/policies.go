package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/dialects"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/inventory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/manifest"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/policysource"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render"
)

// PoliciesFlags are what a user types after policies.
type PoliciesFlags struct {
	Policies PolicyFlags
	Client   ClientFlags
	Output   string
	Config   *genericclioptions.ConfigFlags
}

// PoliciesOptions are what a list of policies needs.
type PoliciesOptions struct {
	described
	Output string
	Out    io.Writer
}

// NewPoliciesCommand is `policies`: what the policies are about, without objects.
func NewPoliciesCommand(config *genericclioptions.ConfigFlags, name string, streams genericiooptions.IOStreams) *cobra.Command {
	f := PoliciesFlags{Config: config, Client: NewClientFlags(), Output: render.Table}
	c := &cobra.Command{
		Use:   "policies",
		Short: "List what policies match, what they may change and what they ask for",
		Long: templates.LongDesc(`
			List every rule of the policies: the objects that it matches, and behind an arrow those
			that it changes in their place; the fields that it may change; how its own engine
			treats objects that exist (admission: not before their next change; trigger: it
			changes other objects, when one that it matches is seen; background: it changes them
			in time); and what it asks beside the object (objects, api, access, service, registry,
			provider). Below are mistakes, what is probably not meant, and versions on their way out.

			No object is read. With files alone no cluster is needed.

			Exit codes: 0 all policies can be evaluated, 2 none can, 3 some cannot.`),
		Example: templates.Examples(fmt.Sprintf(`
			# What do these policies do?
			%[1]s policies -p policy.yaml

			# And those that are installed?
			%[1]s policies --from-cluster -o wide

			# The rules by the names that --only and --skip take
			%[1]s policies -p policy.yaml -o name`, name)),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o, err := f.ToOptions(c.Context(), streams)
			if err != nil {
				return err
			}
			return exit(o.Run())
		},
	}
	f.Policies.AddFlags(c)
	f.Client.AddFlags(c)
	c.Flags().StringVarP(&f.Output, "output", "o", f.Output, "Output format: one of table, wide, json, yaml, name.")
	return c
}

// ToOptions wires what was typed.
func (f *PoliciesFlags) ToOptions(ctx context.Context, streams genericiooptions.IOStreams) (*PoliciesOptions, error) {
	if !slices.Contains(inventory.Formats(), f.Output) {
		return nil, &render.UnknownFormatError{Format: f.Output, Allowed: inventory.Formats()}
	}
	found, err := describing{Policies: f.Policies, Client: f.Client, Config: f.Config}.read(ctx, streams)
	return &PoliciesOptions{described: found, Output: f.Output, Out: streams.Out}, err
}

// Run prints and returns the exit code.
func (o *PoliciesOptions) Run() (int, error) {
	if err := inventory.Print(o.Out, o.Output, o.list); err != nil {
		return ExitNothing, err
	}
	switch {
	case o.list.Broken() > 0 && len(o.rules) == 0:
		return ExitNothing, nil
	case o.list.Broken() > 0:
		return ExitIncomplete, nil
	}
	return ExitOK, nil
}

// describing reads policies and has them tell about themselves.
type describing struct {
	Policies PolicyFlags
	Client   ClientFlags
	Config   *genericclioptions.ConfigFlags
	// client reads the installed policies; nil for one of its own.
	client *cluster.Client
}

// described is what the policies tell.
type described struct {
	documents []engine.Document
	dialects  []engine.Dialect
	rules     []engine.Description
	list      inventory.List
}

// open connects to the cluster, for reading alone.
func (f describing) open() (*cluster.Client, error) {
	return cluster.New(f.Config, cluster.Options{
		QPS: f.Client.QPS, Burst: f.Client.Burst, ReadOnly: true, ChunkSize: NewObjectFlags().ChunkSize,
	})
}

func (f describing) read(ctx context.Context, streams genericiooptions.IOStreams) (described, error) {
	out := described{dialects: dialects.All()}
	if err := f.Policies.Validate(); err != nil {
		return out, err
	}
	accepts := besidePolicies(out.dialects)
	builder := inventory.NewBuilder()
	source := policysource.Source{
		Paths: f.Policies.Paths, Reader: &manifest.Reader{Stdin: streams.In}, Accepts: accepts,
		Warn: func(origin, text string) { builder.Problem(inventory.Warning, fmt.Errorf("%s: %s", origin, text)) },
	}
	if f.Policies.FromCluster && f.client == nil {
		var err error
		if f.client, err = f.open(); err != nil {
			return out, err
		}
	}
	if f.Policies.FromCluster {
		source.FromCluster = func(ctx context.Context) ([]engine.Document, error) { return f.client.PolicyDocuments(ctx, accepts) }
	}
	documents, err := source.Load(ctx)
	if err != nil && (len(documents) == 0 || errors.Is(err, policysource.ErrNoPolicy)) {
		return out, err
	}
	for _, problem := range unjoin(err) {
		builder.Problem(inventory.Error, problem)
	}
	out.documents = documents
	err = out.describe(builder, engine.RuleFilter{Only: f.Policies.Only, Skip: f.Policies.Skip})
	return out, err
}

// describe compiles the policies as an evaluation does.
func (d *described) describe(b *inventory.Builder, rules engine.RuleFilter) error {
	check := &EvaluateOptions{Documents: d.documents, Dialects: d.dialects, Rules: rules, World: &engine.World{Limits: engine.DefaultLimits()}}
	var seen []engine.RuleRef
	for _, dialect := range d.dialects {
		mine := accepted(dialect, d.documents)
		for _, document := range mine {
			if dialect.Accepts(document.Object.GroupVersionKind().GroupKind()) == engine.Policy {
				b.Policy(dialect.Name(), document)
			}
		}
		if len(mine) == 0 {
			continue
		}
		program, err := dialect.Compile(engine.Compilation{
			Documents: mine, Rules: rules, Limits: engine.DefaultLimits(),
			Warn: func(w engine.CompileError) {
				if check.concerns(&w) {
					b.Problem(inventory.Warning, &w)
				}
			},
		})
		for _, broken := range unjoin(err) {
			if check.concerns(broken) {
				b.Problem(inventory.Error, broken)
			}
		}
		if program == nil {
			continue
		}
		seen = append(seen, program.Rules()...)
		if describer, ok := program.(engine.Describer); ok {
			d.rules = append(d.rules, describer.Describe()...)
		}
	}
	if err := check.checkFilter(seen); err != nil {
		return err
	}
	for _, r := range d.rules {
		b.Rule(r)
	}
	d.list = b.List()
	if len(rules.Only)+len(rules.Skip) > 0 {
		d.list.Keep(func(p inventory.Policy) bool { return len(p.Rules)+len(p.Problems) > 0 })
	}
	return nil
}
