package factory

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/clusterreport"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/version"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// OutputOptions returns the options of printers, with the context of the run.
func (f *Factory) OutputOptions(out flags.Output, request engine.Request) output.Options {
	o := out.PrinterOptions(f.stdout)
	o.Out, o.Masker = f.Streams.Out, f.Masker
	o.Context = output.Context{Version: version.Release(), Operation: string(request.Operation), Namespace: strings.Join(f.Namespaces(), ", ")}
	if f.Client != nil {
		info := f.Client.Info()
		o.Context.Context, o.Context.Server, o.Context.User = info.Context, info.Server, info.User
		o.Context.Time = time.Now().UTC().Format(time.RFC3339)
	}
	return o
}

// Announce prints, above changes for people, the cluster and the number of policies.
func (f *Factory) Announce(view *flags.Output, o *preview.Options) {
	if f.Client == nil || f.Quiet || !formats.ForPeople(view.Format) {
		return
	}
	where := wording.Namespaces(f.Namespaces())
	policies := 0
	for _, dialect := range o.Dialects {
		for _, d := range o.Of(dialect) {
			if dialect.Accepts(d.Key.GroupKind) == engine.Policy {
				policies++
			}
		}
	}
	if !f.Canary.Shard.Whole() {
		where += ", shard " + f.Canary.Shard.String()
	}
	if f.Canary.Percent > 0 {
		where += fmt.Sprintf(", %d %% of the objects", f.Canary.Percent)
	}
	if f.Canary.MaxObjects > 0 {
		where += ", at most " + wording.Plural(f.Canary.MaxObjects, "change")
	}
	fmt.Fprintf(f.Streams.ErrOut, "On %s, %s: %s\n", f.Client.Info(), where, wording.Plural(policies, "policy"))
}

// WriteOptions returns OutputOptions for a run that writes; dryRun says how it
// rehearses.
func (f *Factory) WriteOptions(out flags.Output, request engine.Request, dryRun string) output.Options {
	o := f.OutputOptions(out, request)
	o.Writes, o.DryRun = true, dryRun
	return o
}

// Reports begins the reports; see formats.OpenReports.
func (f *Factory) Reports(report flags.Report, o output.Options, stdoutTaken bool) (*formats.Reports, error) {
	return formats.OpenReports(report.Reports, formats.ReportOptions{Options: o, ErrOut: f.stderr, StdoutTaken: stdoutTaken})
}

// PreviewReports is Reports for a preview, which may also keep some in the cluster: the Store is nil if it keeps none.
func (f *Factory) PreviewReports(ctx context.Context, report flags.Report, o output.Options, typed Typed) (*formats.Reports, *clusterreport.Store, error) {
	options := formats.ReportOptions{Options: o, ErrOut: f.stderr, StdoutTaken: typed.Output}
	store, api, err := f.store(ctx, typed.Args, report.Written)
	if err != nil {
		return nil, nil, err
	}
	if options.API = api; store != nil {
		options.Stored = store
	}
	reports, err := formats.OpenReports(report.Reports, options)
	if err != nil && store != nil {
		return nil, nil, errors.Join(err, store.Discard())
	}
	return reports, store, err
}

// Typed is what a user typed that reports depend on: types and names, and whether -o.
type Typed struct {
	Args   []string
	Output bool
}
