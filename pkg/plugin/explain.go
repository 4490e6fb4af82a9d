package plugin

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render"
)

// NewExplainCommand is `explain`: what each rule makes of an object, and why. It
// is a preview of named objects that tells everything.
func NewExplainCommand(evaluate EvaluateFlags, name string, streams genericiooptions.IOStreams) *cobra.Command {
	f := PreviewFlags{EvaluateFlags: evaluate, Output: NewOutputFlags(render.Summary), Explain: true, MustFind: true}
	c := &cobra.Command{
		Use:   "explain TYPE/NAME ...",
		Short: "Tell why a policy changes an object, or does not",
		Long: templates.LongDesc(`
			Tell what each rule of each policy makes of an object, and precisely why: which
			criterion of a match block does not hold, what it wants and what it found; which
			precondition, anchor, path test or condition held the rule back; which exception or
			exclusion spared the object; or what the rule changes.

			The object need not be one that the policies match. Flags are those of preview,
			and nothing is written.

			Exit codes: 0 it could be told, 2 there is no such object or nothing was evaluated, 3 a
			rule failed, would be denied or is not supported.`),
		Example: templates.Examples(fmt.Sprintf(`
			# Why does this policy leave the Deployment as it is?
			%[1]s explain deployment/web -n shop -p policy.yaml

			# Which of the installed policies act on this Pod, and what do they change?
			%[1]s explain pod/web-0 -n shop --from-cluster -o diff`, name)),
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := f.ToOptions(c, args, streams)
			if err != nil {
				return err
			}
			return exit(o.Run(c.Context()))
		},
	}
	f.AddFlags(c)
	f.Output.AddFlags(c, render.Formats())
	return c
}

// asked also streams the objects that the user named although no policy selects
// them: why it does not is what the user wants to know.
type asked struct {
	engine.Source
	selections []engine.Selection
}

// Pages implements engine.Source.
func (s asked) Pages(ctx context.Context, selections []engine.Selection) iter.Seq2[engine.Page, error] {
	return s.Source.Pages(ctx, slices.Concat(selections, s.selections))
}

// explained prepares a run to tell everything about what the user named.
func explained(o *EvaluateOptions, args []string) error {
	o.Reasons = true
	keys, err := resolve(o.World.Mapper, args)
	if err != nil || len(keys) == 0 {
		return err
	}
	source := asked{Source: o.Objects}
	for _, k := range keys {
		source.selections = append(source.selections, engine.Selection{Group: k.Group, Kind: k.Kind})
	}
	o.Objects = source
	return nil
}

// noObject is the error of a run that was to find an object and found none.
func (w *wiring) noObject() error {
	if w.Objects.AllNamespaces || w.Objects.Offline() {
		return &NoObjectError{}
	}
	return &NoObjectError{Namespace: w.namespace()}
}

// NoObjectError tells that there is nothing of what the user named.
type NoObjectError struct{ Namespace string }

// Error says where it was looked for.
func (e *NoObjectError) Error() string {
	if e.Namespace == "" {
		return "there is no such object"
	}
	return fmt.Sprintf("there is no such object in namespace %s; -n names another one, -A looks in all", e.Namespace)
}
