package plugin

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/policies"
)

// PoliciesFlags are what a user types after policies.
type PoliciesFlags struct {
	Policies flags.Policies
	Client   flags.Client
	Output   string
	Config   *genericclioptions.ConfigFlags
}

// PoliciesOptions are what a list of policies needs.
type PoliciesOptions struct {
	factory.Described
	Output string
	Out    io.Writer
}

// NewPoliciesCommand is `policies`: a description of the policies, without objects.
func NewPoliciesCommand(config *genericclioptions.ConfigFlags, name string, streams genericiooptions.IOStreams) *cobra.Command {
	f := PoliciesFlags{Config: config, Output: formats.Table}
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

			No object is read. With files alone no cluster is needed, and a kind that is not one of
			Kubernetes or of the files is a warning; with --from-cluster it is an error.

			Exit codes: 0 all policies can be evaluated, 2 none can, 3 some cannot. With --strict,
			probable mistakes are 3.`),
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
	f.Policies.AddFlags(c.Flags())
	f.Policies.AddStrictFlag(c.Flags())
	f.Client.AddFlags(c.Flags())
	c.Flags().StringVarP(&f.Output, "output", "o", f.Output, "Output format: one of table, wide, json, yaml, name.")
	return c
}

// ToOptions returns the options for the flags.
func (f *PoliciesFlags) ToOptions(ctx context.Context, streams genericiooptions.IOStreams) (*PoliciesOptions, error) {
	if !slices.Contains(policies.Formats(), f.Output) {
		return nil, &formats.UnknownFormatError{Format: f.Output, Allowed: policies.Formats()}
	}
	found, err := factory.PolicyReader{Policies: f.Policies, Client: f.Client, Config: f.Config}.Read(ctx, streams.In)
	return &PoliciesOptions{Described: found, Output: f.Output, Out: streams.Out}, err
}

// Run prints and returns the exit code.
func (o *PoliciesOptions) Run() (int, error) {
	if err := policies.Print(o.Out, o.Output, o.List); err != nil {
		return ExitNothing, err
	}
	switch {
	case o.List.Broken() > 0 && len(o.Descriptions) == 0:
		return ExitNothing, nil
	case o.List.Broken() > 0:
		return ExitIncomplete, nil
	}
	return ExitOK, nil
}
