package plugin

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
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
}

// ApplyOptions are what apply-existing needs.
type ApplyOptions struct {
	EvaluateOptions
	Writer  *apply.Writer
	Preview render.Printer // what would change, before anything is written
	Results render.ResultPrinter
	Confirm Confirm
}

// Confirm asks the user whether to go on.
type Confirm struct {
	Yes     bool      // do not ask
	In      io.Reader // nil where nobody can answer
	Out     io.Writer
	Context string // names the cluster that is written to
}

// NewApplyExistingCommand is `apply-existing`: the changes of preview, made.
func NewApplyExistingCommand(evaluate EvaluateFlags, name string, streams genericiooptions.IOStreams) *cobra.Command {
	f := ApplyFlags{
		EvaluateFlags: evaluate, Output: OutputFlags{Format: render.Summary},
		DryRun: string(apply.DryRunNone), FieldManager: apply.DefaultFieldManager,
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
	o := &ApplyOptions{Confirm: Confirm{Yes: f.Yes || dryRun != apply.DryRunNone, In: streams.In, Out: w.streams.ErrOut, Context: w.client.Info().String()}}
	if err := f.printers(o, w.renderOptions(f.Output, request), w.streams.ErrOut); err != nil {
		return nil, err
	}
	o.Writer = &apply.Writer{
		Server: w.client, Manager: f.FieldManager, ForceConflicts: f.ForceConflicts, DryRun: dryRun, HasStatus: w.client.HasStatus,
	}
	evaluate, err := w.options(c.Context(), args, request)
	if err != nil {
		return nil, w.masker.Error(err)
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

// pending is an object to write: how to evaluate it again, without the object
// itself, which is read afresh.
type pending struct {
	target engine.Target
	scoped bool
}

// Run previews, asks and writes. The error says why nothing, or not everything,
// was tried; objects that could not be written are results.
func (o *ApplyOptions) Run(ctx context.Context) (int, error) {
	e, err := o.compile()
	if err != nil {
		return ExitNothing, err
	}
	if e.broken > 0 {
		return ExitNothing, fmt.Errorf("%s did not compile: nothing was written; mend them, or leave them out with --skip", plural(e.broken, "policy"))
	}
	work, summary, err := o.plan(ctx, e)
	if err != nil {
		return ExitNothing, fmt.Errorf("nothing was written: %w", err)
	}
	if len(work) == 0 {
		if e.incomplete(summary) {
			return ExitNothing, o.Results.Close()
		}
		return ExitOK, o.Results.Close()
	}
	if err := o.Confirm.ask(work); err != nil {
		return ExitNothing, err
	}
	return o.write(ctx, e, work, e.incomplete(summary))
}

// plan is the preview: it shows what would change and remembers which objects.
func (o *ApplyOptions) plan(ctx context.Context, e *evaluation) ([]pending, engine.Summary, error) {
	var work []pending
	summary, err := e.each(ctx, func(c *engine.Change) error {
		if c.Changed() && !c.Denied() {
			p := pending{target: c.Target, scoped: c.Scoped}
			p.target.Object, p.target.OldObject = nil, nil
			work = append(work, p)
		}
		return o.Preview.Print(*c)
	})
	if err != nil {
		return nil, summary, err
	}
	return work, summary, o.Preview.Close(summary)
}

func (o *ApplyOptions) write(ctx context.Context, e *evaluation, work []pending, incomplete bool) (int, error) {
	written, failed := 0, 0
	for _, p := range work {
		result, err := o.Writer.Apply(ctx, p.target.Key, func(ctx context.Context, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return o.again(ctx, e, p, live)
		})
		if err != nil {
			return code(written, 1, incomplete), fmt.Errorf("broke off at %s: %w", p.target.Key, err)
		}
		if err := o.Results.Print(result); err != nil {
			return code(written, 1, incomplete), err
		}
		if result.Err != nil || (result.Status != nil && result.Status.Err != nil) {
			failed++
		}
		if result.Outcome == apply.Applied || result.Outcome == apply.Planned {
			written++
		}
	}
	return code(written, failed, incomplete), o.Results.Close()
}

// code is 0 when all went well, else whether anything was written at all.
func code(written, failed int, incomplete bool) int {
	switch {
	case failed == 0 && !incomplete:
		return ExitOK
	case written == 0:
		return ExitNothing
	}
	return ExitIncomplete
}

// again evaluates a fresh copy of an object.
func (o *ApplyOptions) again(ctx context.Context, e *evaluation, p pending, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	t := p.target.With(live)
	if t.Request.Operation != engine.OperationCreate {
		t.OldObject = live
	}
	c, err := e.Evaluate(ctx, t, p.scoped)
	if err != nil {
		return nil, err
	}
	return c.After, nil
}

// errDeclined ends a run that the user did not agree to.
var errDeclined = errors.New("nothing was written: not confirmed")

// ask shows what is about to happen, and where, and waits for a yes.
func (c *Confirm) ask(work []pending) error {
	if c.Yes {
		return nil
	}
	if c.In == nil || !printers.IsTerminal(c.In) {
		return errors.New("nothing was written: there is no terminal to ask on; --yes writes without asking")
	}
	fmt.Fprintf(c.Out, "\nWrite %s in %s (%s) of %s? [y/N]: ",
		plural(len(work), "object"), plural(len(namespaces(work)), "namespace"), strings.Join(namespaces(work), ", "), c.Context)
	answer, err := bufio.NewReader(c.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("nothing was written: reading the answer: %w", err)
	}
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return errDeclined
	}
	return nil
}

// namespaces are those of the objects with their counts, the fullest first:
// "shop 12", "(cluster) 3".
func namespaces(work []pending) []string {
	counts := map[string]int{}
	for _, p := range work {
		ns := p.target.Key.Namespace
		if ns == "" {
			ns = "(cluster)"
		}
		counts[ns]++
	}
	names := make([]string, 0, len(counts))
	for ns := range counts {
		names = append(names, ns)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	for i, ns := range names {
		names[i] = fmt.Sprintf("%s %d", ns, counts[ns])
	}
	return names
}
