package factory

import (
	"fmt"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/version"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// OutputOptions returns the options of printers, with the context of the run.
func (w *Factory) OutputOptions(out flags.Output, request engine.Request) output.Options {
	o := out.Options(w.stdout)
	o.Out, o.Masker = w.Streams.Out, w.Masker
	o.Context = output.Context{Version: version.Release(), Operation: string(request.Operation), Namespace: w.oneNamespace()}
	if w.Client != nil {
		info := w.Client.Info()
		o.Context.Context, o.Context.Server, o.Context.User = info.Context, info.Server, info.User
		o.Context.Time = time.Now().UTC().Format(time.RFC3339)
	}
	return o
}

// Announce prints, above changes for people, the cluster and the number of policies.
func (w *Factory) Announce(f *flags.Output, o *preview.Options) {
	if w.Client == nil || w.Quiet || !formats.ForPeople(f.Format) {
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

// WriteOptions returns OutputOptions for a run that writes; dryRun says how it
// rehearses.
func (w *Factory) WriteOptions(out flags.Output, request engine.Request, dryRun string) output.Options {
	o := w.OutputOptions(out, request)
	o.Writes, o.DryRun = true, dryRun
	return o
}

// Reports begins the reports; see formats.OpenReports.
func (w *Factory) Reports(f flags.Report, o output.Options, stdoutTaken bool) (*formats.Reports, error) {
	return formats.OpenReports(f.Reports, formats.ReportOptions{Options: o, ErrOut: w.stderr, StdoutTaken: stdoutTaken})
}
