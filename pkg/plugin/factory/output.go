package factory

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/structured"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/version"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// OutputOptions returns the options of printers, with the context of the run.
func (w *Factory) OutputOptions(out flags.Output, request engine.Request) output.Options {
	o := out.Options(w.stdout)
	o.Out, o.Masker = w.Streams.Out, w.Masker
	o.Context = structured.Context{Version: version.Release(), Operation: string(request.Operation), Namespace: w.oneNamespace()}
	if w.Client != nil {
		info := w.Client.Info()
		o.Context.Context, o.Context.Server, o.Context.User = info.Context, info.Server, info.User
		o.Context.Time = time.Now().UTC().Format(time.RFC3339)
	}
	return o
}

// Announce prints, above changes for people, the cluster and the number of policies.
func (w *Factory) Announce(f *flags.Output, o *preview.Options) {
	if w.Client == nil || w.Quiet || !output.ForPeople(f.Format) {
		return
	}
	where := "all namespaces"
	if namespace := w.oneNamespace(); namespace != "" {
		where = "namespace " + namespace
	}
	policies := 0
	for _, dialect := range o.Dialects {
		for _, d := range o.Of(dialect) {
			if dialect.Accepts(d.Object.GroupVersionKind().GroupKind()) == engine.Policy {
				policies++
			}
		}
	}
	fmt.Fprintf(w.Streams.ErrOut, "On %s, %s: %s\n", w.Client.Info(), where, wording.Plural(policies, "policy"))
}

// Reports begins the reports; see formats.Open.
func (w *Factory) Reports(f flags.Report, o output.Options, stdoutTaken bool) (*formats.Set, error) {
	return formats.Open(f.Reports, formats.Options{Render: o, ErrOut: w.stderr, StdoutTaken: stdoutTaken})
}

// ResultReports begins the reports of a run that writes; see formats.OpenResults.
func (w *Factory) ResultReports(f flags.Report, o output.Options, stdoutTaken bool) (*formats.Results, error) {
	return formats.OpenResults(f.Reports, formats.Options{Render: o, ErrOut: w.stderr, StdoutTaken: stdoutTaken})
}

// PreviewAndResults are the printers of a preview and of the results that follow it,
// with the reports beside them. The formats for people show both on one stream; the
// others keep standard output for the results, and so does a report there.
func PreviewAndResults(format string, options output.Options, reports *formats.Results, errOut io.Writer) (output.Printer, output.ResultPrinter, error) {
	preview, first, second := options, format, format
	switch format {
	case output.Diff, output.Summary:
		second = output.Summary
	default:
		first = output.Summary
	}
	if format != first || reports.Instead() {
		preview.Out, preview.Color, preview.Query = errOut, false, ""
	}
	shown, err := output.New(first, preview)
	if err != nil {
		return nil, nil, err
	}
	told, err := output.NewResults(second, options)
	var unknown *output.UnknownFormatError
	if errors.As(err, &unknown) { // the one that is for the preview alone is missing there
		err = &output.UnknownFormatError{Format: unknown.Format, Allowed: append([]string{output.Diff}, unknown.Allowed...)}
	}
	if err != nil {
		return nil, nil, err
	}
	return reports.BesidePreview(shown), reports.Results(told), nil
}
