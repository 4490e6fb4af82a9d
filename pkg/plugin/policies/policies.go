// Package policies has the commands that read policies without objects: policies describes them, rbac prints
// the Roles for their runs, and job the manifests of a Job or CronJob that runs them inside a cluster.
//
// Equal policies, flags and clusters make equal manifests. Policies are untrusted: nothing in them acts on a
// terminal, a shell that the manifests are pasted into, or the kubelet.
package policies

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/catalog"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
)

// listFlags has the flags of policies.
type listFlags struct {
	flags.Evaluate
	Contexts flags.Contexts
	Output   string
}

// NewCommand is `policies`: a description of the policies, without objects.
func NewCommand(evaluate flags.Evaluate, name string) *cobra.Command {
	f := listFlags{Evaluate: evaluate, Contexts: flags.NewContexts(), Output: formats.Table}
	c := &cobra.Command{
		Use:   "policies",
		Short: "List what policies match, what they may change and what they ask for",
		Long: templates.LongDesc(`
			List every rule of the policies: the objects that it matches ("unknown" for a kind that
			there is not), with the number of further conditions (-o wide lists them), and after an
			arrow the objects that it changes instead;
			the fields that it may change; when its own engine changes existing objects (admission:
			at their next change; trigger: when another object that the rule matches changes;
			background: periodically); and what it reads besides the object (objects, api, access,
			service, registry, provider). Below the table are errors, probable mistakes and
			deprecated versions.

			With --contexts the policies of several clusters are listed together, and those of files as
			each cluster would evaluate them: policies that are the same on several clusters are there
			once, with the names of these.

			No object is read. With files alone no cluster is needed, and a kind that is not one of
			Kubernetes or of the files is a warning; with --from-cluster it is an error.

			Exit codes: 0 all policies can be evaluated, 2 none can, 3 some cannot. With --strict,
			probable mistakes are 3.`),
		Example: templates.Examples(fmt.Sprintf(`
			# What do these policies do?
			%[1]s policies -p policy.yaml

			# And those that are installed?
			%[1]s policies --from-cluster -o wide

			# And those of each cluster?
			%[1]s policies --from-cluster --contexts 'prod-*'

			# The rules by the names that --only and --skip take
			%[1]s policies -p policy.yaml -o name`, name)),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.Contexts.Check(c.Flags()); err != nil {
				return err
			}
			if !slices.Contains(catalog.Formats(), f.Output) {
				return &formats.UnknownFormatError{Format: f.Output, Allowed: catalog.Formats()}
			}
			if f.Contexts.Given() {
				return process.Exit(f.fleet(c.Context()))
			}
			f.Quiet, f.Objects.None = true, !f.Policies.FromCluster
			w, err := factory.Open(&f.Evaluate, false, false)
			if err != nil {
				return err
			}
			found, err := w.Describe(c.Context())
			if err != nil {
				return err
			}
			return process.Exit(describedCode(&found), catalog.Print(f.Streams.Out, f.Output, found.List))
		},
	}
	f.Policies.AddFlags(c.Flags())
	f.Policies.AddStrictFlag(c.Flags())
	f.Client.AddFlags(c.Flags())
	f.Contexts.AddFlags(c.Flags())
	c.Flags().StringVarP(&f.Output, "output", "o", f.Output, "Output format: one of table, wide, json, yaml, name.")
	return c
}

// describedCode returns the exit code for described policies.
func describedCode(d *factory.Described) int {
	switch {
	case d.List.Broken() > 0 && len(d.Descriptions) == 0:
		return process.ExitNothing
	case d.List.Broken() > 0:
		return process.ExitIncomplete
	}
	return process.ExitOK
}

// fleet lists the policies of several clusters, and returns the exit code.
func (f *listFlags) fleet(ctx context.Context) (int, error) {
	f.Objects.AllNamespaces = true
	w, err := factory.OpenFleet(&f.Evaluate, &f.Contexts, false)
	if err != nil {
		return process.ExitNothing, err
	}
	lists := make([]*catalog.List, len(w.Contexts))
	runs := preview.ReadClusters(w, &f.Contexts,
		func(ctx context.Context, m *factory.Member, at *factory.Factory) (int, error) {
			found, err := at.Describe(ctx)
			if err != nil {
				return process.ExitNothing, err
			}
			lists[slices.Index(w.Contexts, m.Name)] = &found.List
			return describedCode(&found), nil
		})
	runs.Meter, runs.Ended = nil, nil // no object is read
	code, err := runs.RunAll(ctx)
	if err != nil {
		return code, err
	}
	clusters := make([]catalog.Cluster, len(runs.Members))
	for i, m := range runs.Members {
		clusters[i] = catalog.Cluster{Name: m.Name, Server: m.Server}
		if m.Err != nil {
			clusters[i].Problem = m.Err.Error()
		}
	}
	return code,
		errors.Join(runs.Interrupted, catalog.Print(f.Streams.Out, f.Output, catalog.Join(clusters, lists)))
}
