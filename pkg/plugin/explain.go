package plugin

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
)

// NewExplainCommand is `explain`: what each rule does with an object, and why. It
// is a preview of named objects with the reason of every rule.
func NewExplainCommand(evaluate flags.Evaluate, name string, streams genericiooptions.IOStreams) *cobra.Command {
	f := PreviewFlags{Evaluate: evaluate, Output: flags.NewOutput(formats.Summary), Explain: true, MustFind: true}
	c := &cobra.Command{
		Use:   "explain (TYPE/NAME ... | TYPE NAME ... | -f FILE)",
		Short: "Explain why policies change an object, or do not",
		Long: templates.LongDesc(`
			Explain what each rule of each policy does with an object, and why: which criterion of
			a match block does not hold, what it wants and what the object has; which precondition,
			anchor, path test or condition stopped the rule; which exception or exclusion applies;
			or what the rule changes.

			The object need not be one that the policies match; with -f and no name, all objects of
			the files are explained. A rule may also change it because
			of another object that the rule matches: such objects are looked for wherever the
			policy says. The flags are those of preview, and nothing is written.

			Exit codes: 0 every rule could be explained, 2 there is no such object or nothing was
			evaluated, 3 a rule failed, would be denied or is not supported, 130 interrupted.`),
		Example: templates.Examples(fmt.Sprintf(`
			# Why does this policy leave the Deployment as it is?
			%[1]s explain deployment/web -n shop -p policy.yaml

			# Which of the installed policies act on this Pod, and what do they change?
			%[1]s explain pod/web-0 -n shop --from-cluster -o diff`, name)),
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 && !f.Objects.Offline() {
				return fmt.Errorf("name an object, for example: %s deployment/web -n shop -p policy.yaml", c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			o, err := f.ToOptions(c, args, streams)
			if err != nil {
				return err
			}
			return exit(o.Run(c.Context()))
		},
	}
	f.AddFlags(c.Flags())
	f.Output.AddFlags(c.Flags(), formats.ExplainNames())
	f.Output.AddTemplateFlag(c.Flags())
	return c
}
