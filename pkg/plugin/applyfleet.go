package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// WriteFleet makes or undoes the changes of a directory of plans, cluster by cluster.
type WriteFleet struct {
	runs    []clusterRun
	goOn    bool // to the next cluster after one with failures
	dir     string
	command string // that continues it, as it is typed before the directory
	errOut  io.Writer
}

// clusterRun is the run on one cluster. A nil open is one that has nothing left to do.
type clusterRun struct {
	context string
	open    func() (runner, error)
}

// Run runs cluster by cluster, in their order, and returns the exit code: that of one run on all of them. After a
// cluster where not all went well, the others are left as they are, unless the user wants otherwise.
func (o *WriteFleet) Run(ctx context.Context) (int, error) {
	written, failed := false, false
	for i, run := range o.runs {
		fmt.Fprintf(o.errOut, "Cluster %d of %d: %s\n", i+1, len(o.runs), run.context)
		if run.open == nil {
			fmt.Fprintln(o.errOut, "There is nothing left to do.")
			written = true
			continue
		}
		code, err := ExitNothing, error(nil)
		one, err := run.open()
		if err == nil {
			code, err = one.Run(ctx)
		}
		if err != nil {
			fmt.Fprintf(o.errOut, "error: %s: %s\n", run.context, textOf(err))
		}
		written, failed = written || code != ExitNothing, failed || code != ExitOK
		switch {
		case code == ExitInterrupted, ctx.Err() != nil:
			return ExitInterrupted, o.left("interrupted", i)
		case code != ExitOK && !o.goOn && i < len(o.runs)-1:
			return writtenFleet(written), o.left("stopped after "+run.context, i)
		}
	}
	if failed {
		return writtenFleet(written), nil
	}
	return ExitOK, nil
}

// left returns the error of a run that ends before its last cluster.
func (o *WriteFleet) left(why string, at int) error {
	var names []string
	for _, run := range o.runs[at+1:] {
		names = append(names, run.context)
	}
	if len(names) == 0 {
		names = []string{"none"}
	}
	return fmt.Errorf("%s; clusters that were left as they are: %s. To go on: %s %s", why, strings.Join(names, ", "), o.command, o.dir)
}

// writtenFleet returns the exit code where not all went well.
func writtenFleet(written bool) int {
	if written {
		return ExitIncomplete
	}
	return ExitNothing
}

// errFleetReport reports that a report is of one cluster.
var errFleetReport = errors.New("a directory of plans is written cluster by cluster: with --journal, --report, --metrics or -o json, yaml or name, name one plan of the directory at a time")

// checkFleet returns an error for flags that name a file, or a format that is one document, for one cluster.
func checkFleet(c *cobra.Command, format string) error {
	people := format == formats.Summary || format == formats.Diff
	if !people || slices.ContainsFunc([]string{"journal", "report", "metrics"}, c.Flags().Changed) {
		return errFleetReport
	}
	if c.Flags().Changed("watch") {
		return errors.New("--watch makes what rules do from now on, and not what was planned: leave it out")
	}
	if c.Flags().Changed("context") {
		return errors.New("the plans of the directory name their contexts: leave out --context")
	}
	return nil
}

// runner returns what apply-existing does: on one cluster, or on those of a directory of plans.
func (f *ApplyFlags) runner(c *cobra.Command, args []string, streams genericiooptions.IOStreams) (runner, error) {
	dir := f.Plan + f.Resume
	if !f.Record.Given() || !plan.IsDirectory(dir) {
		return f.ToOptions(c, args, streams)
	}
	if err := errors.Join(f.Write.Validate(), checkFleet(c, f.Output.Format), f.Record.Check(c.Flags(), args)); err != nil {
		return nil, err
	}
	files, err := plan.Files(dir)
	if err != nil {
		return nil, err
	}
	out := newWriteFleet(c, dir, &f.Write, streams)
	out.command = c.CommandPath() + " --resume"
	for _, file := range files {
		run, err := f.clusterRun(c, file, streams)
		if err != nil {
			return nil, fmt.Errorf("nothing was written: %w", err)
		}
		out.runs = append(out.runs, run)
	}
	return out, nil
}

func newWriteFleet(c *cobra.Command, dir string, write *flags.Write, streams genericiooptions.IOStreams) *WriteFleet {
	return &WriteFleet{dir: dir, command: c.CommandPath(), goOn: write.OnError == flags.ContinueOnError, errOut: redact.NewWriter(streams.ErrOut, nil)}
}

// clusterRun returns the run of a plan: from its beginning, or of a directory that is resumed from where its
// journal ends.
func (f *ApplyFlags) clusterRun(c *cobra.Command, file string, streams genericiooptions.IOStreams) (clusterRun, error) {
	p, err := plan.LoadOwn(file)
	if err != nil {
		return clusterRun{}, err
	}
	record := plan.JournalName(file, journal.Extension)
	one := *f
	one.Config = flags.ConfigOf(f.Config, p.Cluster.Context)
	one.Plan, one.Resume, one.Write.Journal = file, "", record
	out := clusterRun{context: p.Cluster.Context, open: func() (runner, error) { return one.ToOptions(c, nil, streams) }}
	if _, err := os.Stat(record); err != nil {
		return out, nil //nolint:nilerr // there is no journal yet
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

// runner returns what undo does: on one cluster, or on those of a directory of plans.
func (f *UndoFlags) runner(c *cobra.Command, args []string, streams genericiooptions.IOStreams) (runner, error) {
	if !plan.IsDirectory(args[0]) {
		return f.ToOptions(c, args, streams)
	}
	if err := errors.Join(f.Write.Validate(), checkFleet(c, f.Output.Format)); err != nil {
		return nil, err
	}
	files, err := journal.Files(args[0])
	if err != nil {
		return nil, err
	}
	out := newWriteFleet(c, args[0], &f.Write, streams)
	for _, file := range slices.Backward(files) {
		j, err := journal.Glance(file)
		if err != nil {
			return nil, err
		}
		if run := j.Run(); run.Written == 0 {
			continue
		}
		one := *f
		one.Config = flags.ConfigOf(f.Config, j.Header.Run.Cluster.Context)
		one.TakeFrom = slices.Clone(f.TakeFrom)
		out.runs = append(out.runs, clusterRun{context: j.Header.Run.Cluster.Context, open: func() (runner, error) {
			return one.ToOptions(c, append([]string{file}, args[1:]...), streams)
		}})
	}
	if len(out.runs) == 0 {
		return nil, fmt.Errorf("%s: %w", args[0], errNothingWritten)
	}
	return out, nil
}
