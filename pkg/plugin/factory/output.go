package factory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/util/term"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/clusterreport"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/objectdiff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/progress"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/version"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// OutputOptions returns the options of printers, with the context of the run.
func (f *Factory) OutputOptions(out flags.Output, request engine.Request) output.Options {
	o := out.PrinterOptions(f.stdout)
	o.Out = f.Streams.Out
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

// PreviewReports is Reports for a preview of types and names, which may also keep some in the cluster: the Store is nil if it keeps none.
func (f *Factory) PreviewReports(ctx context.Context, report flags.Report, o output.Options, args []string, stdoutTaken bool) (*formats.Reports, *clusterreport.Store, error) {
	options := formats.ReportOptions{Options: o, ErrOut: f.stderr, StdoutTaken: stdoutTaken}
	store, api, err := f.store(ctx, args, report.Written)
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

// ExternalDiff returns the program with which the user has set to compare objects, or nil, for the format that uses one.
// A program that cannot be found is an error.
func (f *Factory) ExternalDiff(ctx context.Context, format string) (*objectdiff.External, error) {
	command := os.Getenv(objectdiff.ExternalVariable)
	if command == "" || format != formats.Diff {
		return nil, nil // the user has set none
	}
	return objectdiff.FindExternal(ctx, command, f.stdout, f.Streams.ErrOut)
}

// showProgress shows the progress of the run on standard error, unless --quiet is set. What is
// written to the same terminal clears the line first.
func (f *Factory) showProgress() {
	if f.Quiet {
		return
	}
	errOut := f.Streams.ErrOut
	f.progress = progress.New(progress.Options{
		Out: errOut, Terminal: printers.IsTerminal(errOut), Offline: f.Objects.Offline(),
		Width: func() int {
			if size := (term.TTY{Out: errOut}).GetSize(); size != nil && size.Width > 0 {
				return int(size.Width)
			}
			return 80
		},
	})
	f.Streams.ErrOut = f.progress.Beside(errOut)
	if printers.IsTerminal(f.stdout) {
		f.Streams.Out = f.progress.Beside(f.stdout)
	}
}
