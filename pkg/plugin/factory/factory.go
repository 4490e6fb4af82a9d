// Package factory turns flags into what commands run: readers of policies and
// objects, clients, printers and files.
package factory

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/klog/v2"
	"k8s.io/kubectl/pkg/util/term"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/evaluate"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/input"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Factory turns flags into the parts of a run.
type Factory struct {
	*flags.Evaluate
	Streams     genericiooptions.IOStreams // ErrOut is for notices: it masks, and escapes
	ShowSecrets bool
	Client      *cluster.Client // nil offline
	// Twice as in snapshot.Options.
	Twice func(earlier, later string)

	stdout   io.Writer      // the original; Streams.Out may wrap it
	stderr   io.Writer      // for output that is masked and escaped already
	progress *wording.Meter // nil with --quiet
	reader   *input.Reader
	snapshot *snapshot.Snapshot // the objects of a run without a cluster
	// what policies read if files overlay the cluster, else nil
	overlay *snapshot.Overlay
	unread  evaluate.UnreadInputs
}

// Open makes a Factory for the flags. Its client can only read unless the command writes, and is nil if the
// objects are manifests. It sends no request.
func Open(evaluate *flags.Evaluate, showSecrets, writes bool) (*Factory, error) {
	f, err := OpenShared(evaluate, showSecrets)
	if err != nil || evaluate.Objects.Offline() {
		return f, err
	}
	return f, f.connect(writes)
}

// OpenShared makes a Factory without a client, for the common part of runs on several clusters.
func OpenShared(evaluate *flags.Evaluate, showSecrets bool) (*Factory, error) {
	if err := evaluate.Validate(); err != nil {
		return nil, err
	}
	f := &Factory{
		Evaluate: evaluate, Streams: evaluate.Streams, stdout: evaluate.Streams.Out, ShowSecrets: showSecrets,
		reader: &input.Reader{Stdin: evaluate.Streams.In},
	}
	f.showProgress()
	f.stderr = f.Streams.ErrOut
	f.Streams.ErrOut = redact.NewWriter(f.stderr)
	LogTo(redact.NewWriter(f.stderr)) // clears the progress first
	return f, nil
}

// ReadInstead makes the factory read texts, by their paths, instead of files.
func (f *Factory) ReadInstead(texts map[string][]byte) { f.reader.Instead = texts }

// connect makes the client.
func (f *Factory) connect(writes bool) error {
	options := cluster.Options{
		QPS: f.Evaluate.Client.QPS, Burst: f.Evaluate.Client.Burst,
		ReadOnly: !writes, ChunkSize: cmp.Or(f.Objects.ChunkSize, -1), Waiting: f.progress.Waiting,
	}
	if !f.Quiet {
		options.Warnings = f.Streams.ErrOut
	}
	var err error
	f.Client, err = cluster.New(f.Config, options)
	return err
}

// Warn prints a warning, unless --quiet is set.
func (f *Factory) Warn(err error) {
	if !f.Quiet {
		fmt.Fprintf(f.Streams.ErrOut, "warning: %v\n", err)
	}
}

// warnAt warns about a document; a strict run reports an error instead, which leaves it incomplete even with
// --quiet.
func (f *Factory) warnAt(origin, text string) {
	err := fmt.Errorf("%s: %s", origin, text)
	if f.Policies.Strict {
		f.fail(err)
		return
	}
	f.Warn(err)
}

// note prints a note, unless --quiet is set.
func (f *Factory) note(origin, text string) {
	if !f.Quiet {
		fmt.Fprintf(f.Streams.ErrOut, "note: %s: %s\n", origin, text)
	}
}

// fail reports an error that leaves the run incomplete.
func (f *Factory) fail(err error) {
	fmt.Fprintf(f.Streams.ErrOut, "error: %v\n", err)
	f.unread.Errs = append(f.unread.Errs, err)
}

// leave reports an input that is not used. Few users may read all inputs, so a refusal is only a warning,
// which --quiet does not suppress and the summary counts, unless the run is strict. Any other error leaves
// the run incomplete.
func (f *Factory) leave(err error) {
	err = fmt.Errorf("%w; evaluated as if there were none", err)
	if apierrors.IsForbidden(err) && !f.Policies.Strict {
		fmt.Fprintf(f.Streams.ErrOut, "warning: %v\n", err)
		f.unread.Forbidden++
		return
	}
	f.fail(err)
}

// LogTo makes libraries log to a writer of messages: klog, and Go's package log, which kustomize uses.
func LogTo(out io.Writer) {
	klog.SetOutput(out)
	log.SetFlags(0)
	log.SetOutput(out)
}

// OutputOptions returns the options of printers with the context of the run.
func (f *Factory) OutputOptions(out flags.Output, request engine.Request) output.Options {
	o := out.PrinterOptions(f.stdout)
	o.Out = f.Streams.Out
	o.Context = output.Context{
		Version: process.Release(), Operation: string(request.Operation),
		Namespace: strings.Join(f.Namespaces(), ", "),
	}
	if f.Client != nil {
		info := f.Client.Info()
		o.Context.Context, o.Context.Server, o.Context.User = info.Context, info.Server, info.User
		o.Context.Time = time.Now().UTC().Format(time.RFC3339)
	}
	return o
}

// Announce prints the cluster and the number of policies above changes for people.
func (f *Factory) Announce(view *flags.Output, o *evaluate.Options) {
	if f.Client == nil || f.Quiet || !formats.ForPeople(view.Format) {
		return
	}
	where := wording.Namespaces(f.Namespaces())
	if !f.Canary.Shard.Whole() {
		where += ", shard " + f.Canary.Shard.String()
	}
	if f.Canary.Percent > 0 {
		where += fmt.Sprintf(", %d %% of the objects", f.Canary.Percent)
	}
	if f.Canary.MaxObjects > 0 {
		where += ", at most " + wording.Plural(f.Canary.MaxObjects, "change")
	}
	fmt.Fprintf(f.Streams.ErrOut, "On %s, %s: %s\n", f.Client.Info(), where, wording.Plural(len(o.Own()), "policy"))
}

// WriteOptions returns OutputOptions for a run that writes; dryRun is "client", "server" or "".
func (f *Factory) WriteOptions(out flags.Output, request engine.Request, dryRun string) output.Options {
	o := f.OutputOptions(out, request)
	o.Writes, o.Values, o.DryRun = true, true, dryRun
	return o
}

// Reports begins the reports; see formats.OpenReports.
func (f *Factory) Reports(report flags.Report, o output.Options, stdoutTaken bool) (*formats.Reports, error) {
	return formats.OpenReports(report.Reports,
		formats.ReportOptions{Options: o, ErrOut: f.stderr, StdoutTaken: stdoutTaken})
}

// PreviewReports is Reports for a preview of types and names, which may also keep reports in the cluster;
// the Store is nil if it does not.
func (f *Factory) PreviewReports(ctx context.Context, report flags.Report, o output.Options, args []string,
	stdoutTaken bool,
) (*formats.Reports, *report.Store, error) {
	options := formats.ReportOptions{Options: o, ErrOut: f.stderr, StdoutTaken: stdoutTaken}
	store, api, err := f.store(ctx, args, report.Written)
	if err != nil {
		return nil, nil, err
	}
	if options.API = api; store != nil {
		options.Stored = store
	}
	reports, err := formats.OpenReports(report.Reports, options)
	return reports, store, err
}

// ExternalDiff returns the program of KUBECTL_EXTERNAL_DIFF for the format that uses it, or nil. It fails if
// there is no such program.
func (f *Factory) ExternalDiff(ctx context.Context, format string) (*output.External, error) {
	command := os.Getenv(output.ExternalVariable)
	if command == "" || format != formats.Diff {
		return nil, nil
	}
	return output.FindExternal(ctx, command, f.stdout, f.Streams.ErrOut)
}

// showProgress shows progress on standard error, unless --quiet is set. Output to the same terminal clears
// the line first.
func (f *Factory) showProgress() {
	if f.Quiet {
		return
	}
	errOut := f.Streams.ErrOut
	f.progress = wording.NewMeter(wording.MeterOptions{
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
