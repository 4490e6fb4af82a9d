package plugin

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
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/fleet"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// WriteFleet makes or undoes changes on several clusters, one after the other.
type WriteFleet struct {
	runs    []clusterRun
	goOn    bool   // to the next cluster after one with failures
	resume  string // the command that continues it
	errOut  io.Writer
	format  string
	metrics Metering
	reports *formats.Reports
	// results shows what was written on all clusters, in a format for programs; nil for people, who see each cluster by itself.
	results output.Printer
	// overview shows at the end what came of each cluster.
	overview output.Printer
}

// clusterRun is the run on one cluster.
type clusterRun struct {
	context string
	writes  int // objects of a plan that would be written
	// open begins it; nil where nothing is to be done.
	open func(*writtenCluster) (runner, error)
	// err is why nothing can be done.
	err error
	// shown says that what would change has been shown, and confirmed.
	shown bool
}

// name is the context in a message.
func (r *clusterRun) name() string { return redact.EscapeLine(r.context) }

// writeFlags are the flags that the commands share which write.
type writeFlags struct {
	flags.Evaluate
	flags.Write
	Output flags.Output
	Report flags.Report

	cluster *writtenCluster // nil for the only one
}

// newWriteFleet returns a run on several clusters, which the command resume continues. Its runs share what is printed of all of them.
func (f *writeFlags) newWriteFleet(c *cobra.Command, runs []clusterRun, resume string, streams genericiooptions.IOStreams) (*WriteFleet, error) {
	f.Policies.Recorded = true // each run has its own
	w, err := factory.OpenShared(&f.Evaluate, streams, f.Output.ShowSecrets)
	if err != nil {
		return nil, err
	}
	var contexts []string
	for _, run := range runs {
		contexts = append(contexts, run.context)
	}
	options := factory.OnAll(w.WriteOptions(f.Output, engine.Request{}, f.Rehearsal()), contexts)
	out := &WriteFleet{runs: runs, resume: resume, goOn: f.OnError == flags.ContinueOnError, errOut: w.Streams.ErrOut, format: f.Output.Format, metrics: metering(f.Metrics, "", c, nil)}
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
	out.overview, err = formats.New(formats.Summary, options)
	return out, err
}

// Run runs cluster by cluster, in their order, and returns the exit code: that of one run on all of them. After a
// cluster where not all went well, the others are left as they are, unless the user wants otherwise.
func (o *WriteFleet) Run(ctx context.Context) (int, error) {
	all := output.Fleet{Clusters: make([]output.Cluster, len(o.runs))}
	for i, run := range o.runs {
		all.Clusters[i] = output.Cluster{Name: run.context, Problems: 1, Problem: "left as it is"}
	}
	code, err := o.write(ctx, all.Clusters)
	var shown error
	if slices.ContainsFunc(all.Clusters, func(c output.Cluster) bool { return c.Objects+c.Problems > 0 }) {
		shown = o.overview.Print(all)
	}
	if o.results != nil {
		shown = errors.Join(shown, o.results.Print(all), o.results.Close())
	}
	return o.metrics.finish(reported(o.reports, code, errors.Join(err, shown)))
}

func (o *WriteFleet) write(ctx context.Context, rows []output.Cluster) (int, error) {
	some, failed := ExitNothing, false // the exit code where not all went well
	for i, run := range o.runs {
		fmt.Fprintf(o.errOut, "Cluster %d of %d: %s\n", i+1, len(o.runs), run.name())
		at := &writtenCluster{fleet: o, row: &rows[i], shown: run.shown}
		code := at.run(ctx, run)
		if failed = failed || code != ExitOK; code != ExitNothing {
			some = ExitIncomplete
		}
		switch {
		case code == ExitInterrupted, ctx.Err() != nil:
			return ExitInterrupted, o.left("interrupted", i)
		case code != ExitOK && !o.goOn && i < len(o.runs)-1:
			return some, o.left("stopped after "+run.name(), i)
		}
	}
	if failed {
		return some, nil
	}
	return ExitOK, nil
}

// left returns the error of a run that ends before its last cluster.
func (o *WriteFleet) left(why string, at int) error {
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

// writtenCluster is one of the clusters of a WriteFleet. Nil stands for the only one of a run.
type writtenCluster struct {
	fleet *WriteFleet
	row   *output.Cluster // counts what is written
	shown bool            // see clusterRun
}

// run makes the changes on the cluster, and returns the exit code.
func (m *writtenCluster) run(ctx context.Context, run clusterRun) int {
	m.row.Problems, m.row.Problem = 0, ""
	code, err := ExitNothing, run.err
	switch {
	case err != nil:
		m.problem(err)
	case run.open == nil:
		fmt.Fprintln(m.fleet.errOut, "There is nothing left to do.")
		return ExitOK
	default:
		var one runner
		if one, err = run.open(m); err != nil {
			m.problem(err)
			break
		}
		code, err = one.Run(ctx)
	}
	if err != nil {
		if m.row.Problem == "" {
			m.row.Problems, m.row.Problem = 1, worded(err).Error()
		}
		printError(m.fleet.errOut, run.name()+": ", err)
	}
	return code
}

// problem adds an error that the run on the cluster cannot add itself to the reports.
func (m *writtenCluster) problem(err error) {
	_ = m.reports().Print(output.Problem{Err: err}) // the reports keep their errors
}

func (m *writtenCluster) reports() output.Printer { return onCluster{m.fleet.reports, m, true} }

// onCluster is a printer of all clusters as that of the run on one.
type onCluster struct {
	output.Printer
	cluster *writtenCluster
	counts  bool // the results, as the reports do
}

// Print implements output.Printer.
func (p onCluster) Print(e output.Event) error {
	if p.counts {
		p.cluster.count(e)
	}
	return p.Printer.Print(fleet.On(p.cluster.row.Name, e))
}

// Close leaves the printer open for the other clusters.
func (onCluster) Close() error { return nil }

// count counts what an event says of the cluster.
func (m *writtenCluster) count(e output.Event) {
	row := m.row
	switch e := e.(type) {
	case output.Summary:
		row.Pods = e.Restarts.Pods
	case output.Problem:
		if row.Problems++; row.Problem == "" {
			row.Problem = worded(e.Err).Error()
		}
	case output.Written:
		row.Objects++
		switch {
		case e.Outcome == apply.Applied, e.Outcome == apply.Planned:
			row.Changed++
		case e.RuleStatus() == output.Failed:
			row.Failed++
		}
	}
}

// checkDirectory returns an error for flags that a directory of plans or journals has settled.
func checkDirectory(c *cobra.Command) error {
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

// runner returns what apply-existing does: on one cluster, or on several.
func (f *ApplyFlags) runner(c *cobra.Command, args []string, streams genericiooptions.IOStreams) (runner, error) {
	if err := errors.Join(f.Contexts.Check(c.Flags()), f.Watch.Validate(c.Flags(), &f.Evaluate, f.Output.Format, watchFormats()...)); err != nil {
		return nil, err
	}
	if f.Contexts.Given() {
		return f.toFleet(c, args, streams)
	}
	dir := f.Plan + f.Resume
	if !f.Record.Given() || !plan.IsDirectory(dir) {
		return f.ToOptions(c, args, streams)
	}
	err := errors.Join(f.Write.Validate(), checkDirectory(c), f.Record.Check(c.Flags(), args), flags.CheckFiles(c.Flags()))
	if err != nil {
		return nil, err
	}
	files, err := plan.Files(dir)
	if err != nil {
		return nil, err
	}
	var runs []clusterRun
	for _, path := range files {
		run, err := f.planned(c, path, streams)
		if err != nil {
			return nil, fmt.Errorf("nothing was written: %w", err)
		}
		runs = append(runs, run)
	}
	return f.newWriteFleet(c, runs, c.CommandPath()+" --resume "+wording.ShellQuote(dir), streams)
}

// planned returns the run of a plan: from its beginning, or of a directory that is resumed from where its
// journal ends.
func (f *ApplyFlags) planned(c *cobra.Command, path string, streams genericiooptions.IOStreams) (clusterRun, error) {
	p, err := plan.LoadOwn(path)
	if err != nil {
		return clusterRun{}, err
	}
	record := strings.TrimSuffix(path, plan.Extension) + journal.Extension // beside it
	one := *f
	one.Config = flags.ConfigOf(f.Config, p.Cluster.Context)
	one.Plan, one.Resume, one.Write.Journal = path, "", record
	out := clusterRun{context: p.Cluster.Context, writes: apply.FromPlan(p, path).Count(f.Options.IncludeManaged), open: func(m *writtenCluster) (runner, error) {
		one.cluster = m
		return one.ToOptions(c, nil, streams)
	}}
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
	default:
		out.open = nil
	}
	return out, nil
}
