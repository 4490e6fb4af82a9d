package plugin

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/event"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render"
)

// applyExisting is the name of the command.
const applyExisting = "apply-existing"

// ApplyFlags are what a user types after apply-existing.
type ApplyFlags struct {
	EvaluateFlags
	Output         OutputFlags
	Yes            bool
	DryRun         string
	FieldManager   string
	ForceConflicts bool
	Events         bool
}

// ApplyOptions are what apply-existing needs.
type ApplyOptions struct {
	EvaluateOptions
	Writer  *apply.Writer
	Preview render.Printer // what would change, before anything is written
	Results render.ResultPrinter
	Prompt  *Prompt
	Events  *event.Recorder // nil records none
}

// NewApplyExistingCommand is `apply-existing`: the changes of preview, made.
func NewApplyExistingCommand(evaluate EvaluateFlags, name string, streams genericiooptions.IOStreams) *cobra.Command {
	f := ApplyFlags{
		EvaluateFlags: evaluate, Output: OutputFlags{Format: render.Summary},
		DryRun: string(apply.DryRunNone), FieldManager: apply.DefaultFieldManager, Events: true,
	}
	c := &cobra.Command{
		Use:   applyExisting + " [TYPE | TYPE/NAME ...]",
		Short: "Make the changes that preview shows, with server-side apply",
		Long: templates.LongDesc(`
			Make the changes that preview shows, on the same objects.

			The summary of the changes is shown first, and nothing is written before you agree.
			Every object is read again, evaluated again and tried in a server dry run just before
			it is written. Rules that run only when an object is created are left out unless --operation
			is given. The request holds the changed fields alone, with server-side apply where
			that can express the change and a guarded JSON patch where it cannot. It never brings back an
			object that was deleted meanwhile, and refuses to take over fields that another
			manager applied, unless --force-conflicts is given.

			Exit codes: 0 everything was applied or there was nothing to do, 2 nothing was
			written, 3 some objects were written and some were not.`),
		Example: templates.Examples(fmt.Sprintf(`
			# Show what would change, ask, and write
			%[1]s apply-existing -A -p policy.yaml

			# Let the server check every change, and write nothing
			%[1]s apply-existing -n shop -p policy.yaml --dry-run=server --yes

			# One object, without being asked
			%[1]s apply-existing deployment/web -n shop -p policy.yaml --yes`, name)),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := f.ToOptions(c, args, streams)
			if err != nil {
				return err
			}
			return exit(o.Run(c.Context()))
		},
	}
	f.AddFlags(c)
	f.Output.AddFlags(c, render.Diff+", "+render.ResultFormats())
	flags := c.Flags()
	flags.BoolVarP(&f.Yes, "yes", "y", false, "Write without asking.")
	flags.StringVar(&f.DryRun, "dry-run", f.DryRun, `"none", "client" (plan the requests and send none), or "server" (send them as dry runs).`)
	flags.StringVar(&f.FieldManager, "field-manager", f.FieldManager, "Name of the manager that will own the changed fields.")
	flags.BoolVar(&f.ForceConflicts, "force-conflicts", false, "Take over fields that another manager applied.")
	flags.BoolVar(&f.Events, "events", f.Events, "Record an event PolicyApplied on each target of a mutate-existing rule that was written.")
	return c
}

// ToOptions wires what was typed.
func (f *ApplyFlags) ToOptions(c *cobra.Command, args []string, streams genericiooptions.IOStreams) (*ApplyOptions, error) {
	dryRun := apply.DryRun(f.DryRun)
	switch {
	case f.Objects.Offline():
		return nil, errors.New("apply-existing writes to a cluster: -f/--filename works with preview only (its -o manifests prints the changed objects)")
	case dryRun != apply.DryRunNone && dryRun != apply.DryRunClient && dryRun != apply.DryRunServer:
		return nil, fmt.Errorf("--dry-run %q: use none, client or server", f.DryRun)
	}
	request, err := f.Objects.Request()
	if err != nil {
		return nil, err
	}
	if !c.Flags().Changed("operation") {
		request.Operation = engine.OperationUpdate // rules for new objects run only when that is asked for
	}
	w, err := f.wire(streams, f.Output.ShowSecrets, true)
	if err != nil {
		return nil, err
	}
	o := &ApplyOptions{Prompt: NewPrompt(streams.In, w.streams.ErrOut, w.client.Info().String())}
	o.Prompt.Yes = f.Yes || dryRun != apply.DryRunNone
	if err := f.printers(o, w.renderOptions(f.Output, request), w.streams.ErrOut); err != nil {
		return nil, err
	}
	o.Writer = &apply.Writer{
		Server: w.client, Manager: f.FieldManager, ForceConflicts: f.ForceConflicts, DryRun: dryRun,
		HasStatus: w.client.HasStatus, Confirm: o.Prompt.one,
	}
	evaluate, err := w.options(c.Context(), args, request)
	if err != nil {
		return nil, w.masker.Error(err)
	}
	evaluate.Annotate, evaluate.Metrics = f.Annotate, f.Metrics.metering(c)
	if f.Events && dryRun == apply.DryRunNone {
		o.Events = &event.Recorder{Creator: w.client, Now: time.Now, Warn: w.warn}
	}
	o.EvaluateOptions = *evaluate
	return o, nil
}

// printers sets how the preview and the results are shown. The human formats
// show both on one stream; the others keep standard output for the results.
func (f *ApplyFlags) printers(o *ApplyOptions, options render.Options, errOut io.Writer) error {
	options.DryRun = strings.TrimPrefix(f.DryRun, string(apply.DryRunNone))
	preview, results, format := options, f.Output.Format, render.Summary
	switch f.Output.Format {
	case render.Diff, render.Summary:
		results, format = render.Summary, f.Output.Format
	default:
		preview.Out, preview.Color, preview.Query = errOut, false, ""
	}
	var err error
	if o.Results, err = render.NewResults(results, options); err != nil {
		return err
	}
	o.Preview, err = render.New(format, preview)
	return err
}
