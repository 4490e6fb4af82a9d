package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/plan"
)

// Fleet makes or undoes changes on several clusters, one after the other.
type Fleet struct {
	runs    []ClusterRun
	goOn    bool                        // after a cluster with failures
	resume  string                      // the command to continue
	confirm func(context.Context) error // called before the first cluster; may be nil
	errOut  io.Writer
	format  string
	metrics preview.Metering
	reports *formats.Reports
	// results prints the writes of all clusters in a format for programs; nil for the human format, which is
	// per cluster.
	results output.Printer
	// overview prints the outcome of each cluster at the end.
	overview output.Printer
}

// ClusterRun is the run of a Fleet on one cluster.
type ClusterRun struct {
	Context string // of the kubeconfig, by which messages name the cluster
	Writes  int    // objects that would be written, at most
	// Open returns the run, which reports to the cluster; nil if there is nothing to do.
	Open func(*WrittenCluster) (process.Runner, error)
	// err is the reason why the run is impossible.
	err error
	// shown is set after the changes were shown and confirmed.
	shown bool
}

// name is the context in a message.
func (r *ClusterRun) name() string { return redact.EscapeLine(r.Context) }

// WriteFlags are the flags that apply-existing and undo share.
type WriteFlags struct {
	flags.Evaluate
	flags.Write
	Output flags.Output
	Report flags.Report

	Cluster *WrittenCluster // nil for the only one
}

// NewWriteFleet returns a run on several clusters, which the command resume continues. It asks, if at all,
// once at first. Its runs share the output for all clusters.
func (f *WriteFlags) NewWriteFleet(c *cobra.Command, runs []ClusterRun, resume string,
	asks bool,
) (*Fleet, error) {
	f.Policies.Recorded = true // each run has its own
	w, err := factory.OpenShared(&f.Evaluate, f.Output.ShowSecrets)
	if err != nil {
		return nil, err
	}
	var contexts []string
	for _, run := range runs {
		contexts = append(contexts, run.Context)
	}
	options := factory.OnAll(w.WriteOptions(f.Output, engine.Request{}, f.Rehearsal()), contexts)
	out := &Fleet{
		runs: runs, resume: resume, goOn: f.OnError == flags.ContinueOnError, errOut: w.Streams.ErrOut,
		format: f.Output.Format, metrics: preview.NewMetering(f.Metrics, "", c, nil),
	}
	if out.reports, err = w.Reports(f.Report, options, c.Flags().Changed("output")); err != nil {
		return nil, err
	}
	people := formats.ForPeople(out.format)
	if !people || out.reports.Instead() {
		if out.results, err = formats.NewResults(out.format, options, out.reports); err != nil {
			return nil, err
		}
		if options.Out, options.Color, options.Query = w.Streams.ErrOut, false, ""; f.Quiet {
			options.Out = io.Discard
		}
	}
	if asks {
		out.confirm = func(ctx context.Context) error { return f.confirmFleet(ctx, runs, out.errOut) }
	}
	out.overview, err = formats.New(formats.Summary, options)
	return out, err
}

// Run runs cluster by cluster, in order, and returns the exit code as of one run on all. It stops after a
// cluster with failures, unless the user wants otherwise.
func (o *Fleet) Run(ctx context.Context) (int, error) {
	all := output.Fleet{Clusters: make([]output.Cluster, len(o.runs))}
	for i, run := range o.runs {
		all.Clusters[i] = output.Cluster{Name: run.Context, Problems: 1, Problem: "left as it is"}
	}
	if o.confirm != nil {
		if err := o.confirm(ctx); err != nil {
			return o.metrics.Finish(WriteReports(o.reports, process.ExitNothing, err))
		}
	}
	code, err := o.write(ctx, all.Clusters)
	var shown error
	if slices.ContainsFunc(all.Clusters, func(c output.Cluster) bool { return c.Objects+c.Problems > 0 }) {
		shown = o.overview.Print(all)
	}
	if o.results != nil {
		shown = errors.Join(shown, o.results.Print(all), o.results.Close())
	}
	return o.metrics.Finish(WriteReports(o.reports, code, errors.Join(err, shown)))
}

func (o *Fleet) write(ctx context.Context, rows []output.Cluster) (int, error) {
	some, failed := process.ExitNothing, false // the exit code after failures
	for i, run := range o.runs {
		fmt.Fprintf(o.errOut, "Cluster %d of %d: %s\n", i+1, len(o.runs), run.name())
		at := &WrittenCluster{fleet: o, row: &rows[i], shown: run.shown}
		code := at.run(ctx, run)
		if failed = failed || code != process.ExitOK; code != process.ExitNothing {
			some = process.ExitIncomplete
		}
		switch {
		case code == process.ExitInterrupted, ctx.Err() != nil:
			return process.ExitInterrupted, o.left("interrupted", i)
		case code != process.ExitOK && !o.goOn && run.err == nil && i < len(o.runs)-1:
			return some, o.left("stopped after "+run.name(), i)
		}
	}
	if failed {
		return some, nil
	}
	return process.ExitOK, nil
}

// left returns the error of a run that ends before its last cluster.
func (o *Fleet) left(why string, at int) error {
	var names []string
	for _, run := range o.runs[at+1:] {
		names = append(names, run.name())
	}
	if len(names) == 0 {
		names = []string{"none"}
	}
	text := why + "; clusters that were left as they are: " + strings.Join(names, ", ")
	if o.resume != "" {
		text += ". To go on: " + o.resume
	}
	return errors.New(text)
}

// WrittenCluster is one of the clusters of a Fleet; nil if a run has only one.
type WrittenCluster struct {
	fleet *Fleet
	row   *output.Cluster // counts the writes
	shown bool            // as ClusterRun has it
}

// run makes the changes on the cluster, and returns the exit code.
func (m *WrittenCluster) run(ctx context.Context, run ClusterRun) int {
	m.row.Problems, m.row.Problem = 0, ""
	code, err := process.ExitNothing, run.err
	switch {
	case err != nil:
		m.problem(err)
	case run.Open == nil:
		fmt.Fprintln(m.fleet.errOut, "There is nothing left to do.")
		return process.ExitOK
	default:
		var one process.Runner
		if one, err = run.Open(m); err != nil {
			m.problem(err)
			break
		}
		code, err = one.Run(ctx)
	}
	if err != nil {
		if m.row.Problem == "" {
			m.row.Problems, m.row.Problem = 1, process.Message(err)
		}
		process.PrintError(m.fleet.errOut, run.name()+": ", err)
	}
	return code
}

// problem adds an error to the reports that the run on the cluster cannot add itself.
func (m *WrittenCluster) problem(err error) {
	_ = m.reports().Print(output.Problem{Err: err}) // the reports keep their errors
}

func (m *WrittenCluster) reports() output.Printer { return onCluster{m.fleet.reports, m, true} }

// onCluster is the printer of all clusters for the run on one.
type onCluster struct {
	output.Printer
	cluster *WrittenCluster
	counts  bool // the results, as the reports do
}

// Print implements output.Printer.
func (p onCluster) Print(e output.Event) error {
	if p.counts {
		p.cluster.count(e)
	}
	return p.Printer.Print(factory.OnCluster(p.cluster.row.Name, e))
}

// Close keeps the printer open for the other clusters.
func (onCluster) Close() error { return nil }

// count adds an event to the counts of the cluster.
func (m *WrittenCluster) count(e output.Event) {
	row := m.row
	switch e := e.(type) {
	case output.Summary:
		row.Pods = e.Restarts.Pods
	case output.Problem:
		if row.Problems++; row.Problem == "" {
			row.Problem = process.Message(e.Err)
		}
	case output.Written:
		row.Objects++
		switch {
		case e.Outcome == write.Applied, e.Outcome == write.Planned:
			row.Changed++
		case e.RuleStatus() == output.Failed:
			row.Failed++
		}
	}
}

// CheckDirectory returns an error for flags that a directory of plans or journals determines.
func CheckDirectory(c *cobra.Command) error {
	switch {
	case c.Flags().Changed("journal"):
		return errors.New("--journal names one file, and each cluster has a journal, which is kept beside its plan: leave it out")
	case c.Flags().Changed("watch"):
		return errors.New("--watch makes what rules do from now on, and not what was planned: leave it out")
	case c.Flags().Changed("context"), c.Flags().Changed("contexts"):
		return errors.New("the files of the directory name their contexts: leave out --context and --contexts")
	}
	return flags.CheckSeveral(c.Flags())
}

// runner returns the run of apply-existing on one cluster or several.
func (f *Flags) runner(c *cobra.Command, args []string) (process.Runner, error) {
	if err := errors.Join(f.Contexts.Check(c.Flags()), f.Watch.Validate(c.Flags(), &f.Evaluate, f.Output.Format,
		preview.WatchFormats()...)); err != nil {
		return nil, err
	}
	if f.Contexts.Given() {
		return f.toFleet(c, args)
	}
	dir := f.Plan + f.Resume
	if !f.Record.Given() || !plan.IsDirectory(dir) {
		return f.ToOptions(c, args)
	}
	err := errors.Join(f.Write.Validate(), CheckDirectory(c), f.Record.Check(c.Flags(), args, true),
		flags.CheckFiles(c.Flags()))
	if err != nil {
		return nil, err
	}
	files, err := plan.Files(dir)
	if err != nil {
		return nil, err
	}
	var runs []ClusterRun
	for _, path := range files {
		run, err := f.planned(c, path)
		if err != nil {
			return nil, fmt.Errorf("nothing was written: %w", err)
		}
		runs = append(runs, run)
	}
	asks := f.Resume != "" // plans were reviewed
	return f.NewWriteFleet(c, runs, c.CommandPath()+" --resume "+wording.ShellQuote(dir), asks)
}

// planned returns the run of a plan, which begins at the end of its journal when a directory is resumed.
func (f *Flags) planned(c *cobra.Command, path string) (ClusterRun, error) {
	p, err := plan.LoadOwn(path)
	if err != nil {
		return ClusterRun{}, err
	}
	record := strings.TrimSuffix(path, plan.Extension) + journal.Extension // beside it
	one := *f
	one.Config = flags.ConfigOf(f.Config, p.Cluster.Context)
	one.Plan, one.Resume, one.Write.Journal = path, "", record
	out := ClusterRun{Context: p.Cluster.Context}
	out.Writes = write.FromPlan(p, path).Count(f.IncludeManaged)
	out.Open = func(m *WrittenCluster) (process.Runner, error) {
		one.Cluster = m
		return one.ToOptions(c, nil)
	}
	switch {
	case p.Problem != "":
		out.err = p.NotEvaluated()
		return out, nil
	case len(p.Entries) == 0 && !p.Incomplete:
		out.Open = nil
	}
	if _, err := os.Stat(record); errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if f.Resume == "" {
		return out, fmt.Errorf("%s is the journal of a run that has begun: use --resume", record)
	}
	j, err := journal.Glance(record)
	if err != nil {
		return out, err
	}
	switch run := j.Run(); {
	case run.Resumable(), run.Failed > 0:
		one.Plan, one.Resume, one.Write.Journal = "", record, ""
		out.Writes = run.InDoubt + run.Left
	default:
		out.Open = nil
	}
	return out, nil
}
