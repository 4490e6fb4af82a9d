package plugin

import (
	"errors"
	"fmt"
	"io"
	"slices"
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
	WriteFlags
	RecordFlags
	Output OutputFlags
	Events bool
}

// ApplyOptions are what apply-existing needs.
type ApplyOptions struct {
	EvaluateOptions
	Executor *executor
	Preview  render.Printer // what would change, before anything is written
	Results  render.ResultPrinter
	Events   *event.Recorder // nil records none
	Record   *recordedRun    // what is to be made; nil makes what is evaluated
}

// NewApplyExistingCommand is `apply-existing`: the changes of preview, made.
func NewApplyExistingCommand(evaluate EvaluateFlags, name string, streams genericiooptions.IOStreams) *cobra.Command {
	f := ApplyFlags{
		EvaluateFlags: evaluate, WriteFlags: NewWriteFlags(), RecordFlags: NewRecordFlags(), Output: NewOutputFlags(render.Summary), Events: true,
	}
	c := &cobra.Command{
		Use:   applyExisting + " [TYPE | TYPE/NAME ...]",
		Short: "Make the changes that preview shows, with server-side apply",
		Long: templates.LongDesc(`
			Make the changes that preview shows, on the same objects.

			The changes are shown first. Then every object is read again, evaluated again, and its
			change is tried in a server dry run; if the server rejects one, or you lack a permission,
			nothing is written. Then you are asked, and each object is written with one request,
			guarded by the version of the object that it was made for: with server-side apply where
			that can express the change, and a JSON patch where it cannot. An object that was deleted
			meanwhile is never brought back, and fields that another manager applied are not taken
			over, unless --take-from or --force-conflicts is given. Rules that run only when an object
			is created are left out unless --operation is given.

			Every write is recorded in a journal. A run that was cut off goes on with --resume, and
			the command undo takes one back.

			Exit codes: 0 everything was applied or there was nothing to do, 2 nothing was
			written, 3 some objects were written and some were not, 130 interrupted.`),
		Example: templates.Examples(fmt.Sprintf(`
			# Show what would change, ask, and write
			%[1]s apply-existing -A -p policy.yaml

			# Let the server check every change, and write nothing
			%[1]s apply-existing -n shop -p policy.yaml --dry-run=server --yes

			# One object, without being asked
			%[1]s apply-existing deployment/web -n shop -p policy.yaml --yes

			# Exactly what was previewed and reviewed
			%[1]s preview -A -p policy.yaml --save plan.json
			%[1]s apply-existing --plan plan.json

			# In batches, each after the rollouts of the one before
			%[1]s apply-existing -A -p policy.yaml --batch-size 10 --wait

			# Go on with a run that was cut off
			%[1]s apply-existing --resume JOURNAL`, name)),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := f.ToOptions(c, args, streams)
			if err != nil {
				return err
			}
			return exit(o.Run(c.Context()))
		},
	}
	f.EvaluateFlags.AddFlags(c)
	hideOffline(c)
	f.WriteFlags.AddFlags(c)
	f.RecordFlags.AddFlags(c)
	f.Output.AddFlags(c, render.Diff+", "+render.ResultFormats())
	c.Flags().BoolVar(&f.Events, "events", f.Events, "Record an event PolicyApplied on each target of a mutate-existing rule that was written.")
	return c
}

// offline are the flags of preview that do without a cluster.
var offline = []string{"filename", "recursive", "world"} //nolint:gochecknoglobals // an immutable table

// errOffline tells that there is nothing to write to.
var errOffline = errors.New("apply-existing writes to a cluster: -f/--filename, -R/--recursive and --world work with preview only (its -o manifests prints the changed objects)")

// hideOffline leaves them out of the help. Who types one is told what to use.
func hideOffline(c *cobra.Command) {
	for _, name := range offline {
		c.Flags().Lookup(name).Hidden = true
	}
}

// ToOptions wires what was typed.
func (f *ApplyFlags) ToOptions(c *cobra.Command, args []string, streams genericiooptions.IOStreams) (*ApplyOptions, error) {
	if slices.ContainsFunc(offline, c.Flags().Changed) {
		return nil, errOffline
	}
	if err := f.WriteFlags.Validate(); err != nil {
		return nil, err
	}
	if f.recorded() {
		return f.recordedOptions(c, args, streams)
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
	o, err := f.newOptions(w, request)
	if err != nil {
		return nil, err
	}
	evaluate, err := w.options(c.Context(), args, request)
	if err != nil {
		return nil, w.masker.Error(err)
	}
	evaluate.Annotate = f.Annotate
	o.evaluating(c, f, evaluate)
	if f.rehearses() {
		return o, nil
	}
	run, err := w.recorded(c.Context(), args, evaluate)
	if err != nil {
		return nil, w.masker.Error(err)
	}
	o.Executor.Journal, err = w.newJournal(c, args, &f.WriteFlags, run)
	return o, err
}

// newOptions wires what does not depend on where the changes come from.
func (f *ApplyFlags) newOptions(w *wiring, request engine.Request) (*ApplyOptions, error) {
	o := &ApplyOptions{}
	if err := f.printers(o, w.renderOptions(f.Output, request), w.streams.ErrOut); err != nil {
		return nil, err
	}
	o.Executor = w.executor(&f.WriteFlags, o.Results)
	o.Executor.ShowDrift = driftShower(w.renderOptions(f.Output, request), w.streams.ErrOut)
	if f.Events && !f.rehearses() {
		o.Events = &event.Recorder{Creator: w.client, Now: time.Now, Warn: w.warn}
	}
	return o, nil
}

// evaluating adds how the changes are evaluated.
func (o *ApplyOptions) evaluating(c *cobra.Command, f *ApplyFlags, evaluate *EvaluateOptions) {
	evaluate.Metrics, evaluate.FieldManager = f.Metrics.metering(c), f.FieldManager
	o.EvaluateOptions, o.Executor.Command = *evaluate, c.CommandPath()
}

// executor wires what verifies and writes.
func (w *wiring) executor(f *WriteFlags, results render.ResultPrinter) *executor {
	prompt := NewPrompt(w.streams.In, w.streams.ErrOut, w.client.Info())
	prompt.Yes = f.Yes || f.rehearses()
	return &executor{
		WriteFlags: f, Results: results, Prompt: prompt, Access: w.client, Mapper: w.client.Mapper(),
		Masker: w.secrets, ErrOut: w.streams.ErrOut, Meter: w.progress,
		Writer: &apply.Writer{
			Server: apply.Patient{Server: w.client.Once()}, Manager: f.FieldManager,
			ForceConflicts: f.ForceConflicts, TakeFrom: f.TakeFrom, DryRun: apply.DryRun(f.DryRun),
			HasStatus: w.client.HasStatus, Confirm: prompt.one,
		},
	}
}

// printers sets how the preview and the results are shown.
func (f *ApplyFlags) printers(o *ApplyOptions, options render.Options, errOut io.Writer) (err error) {
	o.Preview, o.Results, err = f.Output.both(options, f.DryRun, errOut)
	return err
}

// both are the printers of a preview and of the results that follow it. The human
// formats show both on one stream; the others keep standard output for the results.
func (f *OutputFlags) both(options render.Options, dryRun string, errOut io.Writer) (render.Printer, render.ResultPrinter, error) {
	options.DryRun = strings.TrimPrefix(dryRun, string(apply.DryRunNone))
	preview, results, format := options, f.Format, render.Summary
	switch f.Format {
	case render.Diff, render.Summary:
		results, format = render.Summary, f.Format
	default:
		preview.Out, preview.Color, preview.Query = errOut, false, ""
	}
	shown, err := render.New(format, preview)
	if err != nil {
		return nil, nil, err
	}
	told, err := render.NewResults(results, options)
	return shown, told, err
}
