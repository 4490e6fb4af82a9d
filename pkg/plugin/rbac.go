package plugin

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/inventory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/rbac"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render"
)

// RBACFlags are what a user types after rbac.
type RBACFlags struct {
	Policies PolicyFlags
	Client   ClientFlags
	For      string
	Name     string
	Output   string
	Config   *genericclioptions.ConfigFlags
}

// What --for takes.
const (
	forPreview = "preview"
	forApply   = "apply"
)

// RBACOptions are what printing roles needs.
type RBACOptions struct {
	Roles  []rbac.Role
	Notes  []string
	Broken []inventory.Problem
	Output string
	Out    io.Writer
	ErrOut io.Writer
}

// NewRBACCommand is `rbac`: the permissions that a run of policies takes.
func NewRBACCommand(config *genericclioptions.ConfigFlags, name string, streams genericiooptions.IOStreams) *cobra.Command {
	f := RBACFlags{Config: config, Client: NewClientFlags(), For: forPreview, Name: "kubectl-mutate", Output: render.YAML}
	c := &cobra.Command{
		Use:   "rbac",
		Short: "Print the least permissions that a preview or an apply of policies needs",
		Long: templates.LongDesc(`
			Print the least ClusterRole with which a preview of the policies can be made, or with
			--for apply, with which their changes can be applied. With -n it is a Role for that
			namespace, and a ClusterRole for what is in none.

			It holds the kinds that the policies match and change as the cluster serves them, the
			namespaces, what policies read beside the object, and the exceptions, bindings and
			settings that are installed. What every user may do already (discovery, asking about
			oneself) is not in it. Nothing is written: pipe it into kubectl apply.`),
		Example: templates.Examples(fmt.Sprintf(`
			# Who may preview this policy in all namespaces?
			%[1]s rbac -p policy.yaml

			# Let the members of a team apply it in theirs
			%[1]s rbac -p policy.yaml --for apply -n shop --name label-shop | kubectl apply -f -`, name)),
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
	c.Flags().StringVar(&f.For, "for", f.For, "What the permissions are for: preview or apply.")
	c.Flags().StringVar(&f.Name, "name", f.Name, "Name of the roles.")
	c.Flags().StringVarP(&f.Output, "output", "o", f.Output, "Output format: one of yaml, json.")
	return c
}

// Validate refuses what cannot be meant.
func (f *RBACFlags) Validate() error {
	if f.Output != render.YAML && f.Output != render.JSON {
		return &render.UnknownFormatError{Format: f.Output, Allowed: []string{render.YAML, render.JSON}}
	}
	if f.For != forPreview && f.For != forApply {
		return fmt.Errorf("--for %q: use %s or %s", f.For, forPreview, forApply)
	}
	return f.Policies.Validate()
}

// ToOptions reads the policies and asks the server for its kinds.
func (f *RBACFlags) ToOptions(ctx context.Context, streams genericiooptions.IOStreams) (*RBACOptions, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	read := describing{Policies: f.Policies, Client: f.Client, Config: f.Config}
	client, err := read.open()
	if err != nil {
		return nil, err
	}
	read.client = client
	found, err := read.read(ctx, streams)
	if err != nil {
		return nil, err
	}
	served, err := client.Served(ctx)
	if err != nil {
		return nil, err
	}
	run := rbac.Run{
		Rules: found.rules, Served: served, Applies: f.For == forApply, Reads: found.reads(f.Policies.FromCluster),
		HasStatus: func(gvk schema.GroupVersionKind) bool {
			has, err := client.HasStatus(ctx, gvk)
			return has && err == nil // the kinds have been read; one that is gone has none
		},
	}
	if f.Config.Namespace != nil {
		run.Namespace = *f.Config.Namespace
	}
	needs, notes, err := run.Needs()
	if err != nil {
		return nil, err
	}
	o := &RBACOptions{
		Roles: rbac.Roles(f.Name, needs, run.Namespace), Notes: notes, Broken: found.list.Errors(), Output: f.Output,
		Out: streams.Out, ErrOut: notices{streams.ErrOut, nil},
	}
	return o, nil
}

// reads tells which kinds are read from the cluster as policies, or for them: the
// inputs of the languages in use, or with --from-cluster all of all languages.
func (d *described) reads(fromCluster bool) func(schema.GroupKind) bool {
	accepts := besidePolicies(d.dialects)
	return func(gk schema.GroupKind) bool {
		if fromCluster {
			return accepts(gk) != engine.Foreign
		}
		for _, dialect := range d.dialects {
			if dialect.Accepts(gk) == engine.Input && accepts(gk) == engine.Input && len(accepted(dialect, d.documents)) > 0 {
				return true
			}
		}
		return false
	}
}

// Run prints the roles, and tells of policies that are not in them.
func (o *RBACOptions) Run() (int, error) {
	for _, p := range o.Broken {
		fmt.Fprintf(o.ErrOut, "error: %s; what it needs is not in the roles\n", p)
	}
	var err error
	if o.Output == render.JSON {
		for _, note := range o.Notes {
			fmt.Fprintf(o.ErrOut, "warning: %s\n", note)
		}
		err = rbac.PrintJSON(o.Out, o.Roles)
	} else {
		err = rbac.PrintYAML(o.Out, o.Roles, o.Notes)
	}
	switch {
	case err != nil:
		return ExitNothing, err
	case len(o.Broken) > 0:
		return ExitIncomplete, nil
	}
	return ExitOK, nil
}
