package plugin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

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
	out, err := newWriteFleet(c, writeFlags{&f.Evaluate, &f.Write, f.Output, f.Report}, runs, streams)
	if err == nil {
		out.resume = c.CommandPath() + " --resume " + wording.ShellQuote(dir)
	}
	return out, err
}

// planned returns the run of a plan: from its beginning, or of a directory that is resumed from where its
// journal ends.
func (f *ApplyFlags) planned(c *cobra.Command, path string, streams genericiooptions.IOStreams) (clusterRun, error) {
	p, err := plan.LoadOwn(path)
	if err != nil {
		return clusterRun{}, err
	}
	record := plan.JournalName(path, journal.Extension)
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

// runner returns what undo does: on one cluster, or on those of a directory of plans.
func (f *UndoFlags) runner(c *cobra.Command, args []string, streams genericiooptions.IOStreams) (runner, error) {
	if !plan.IsDirectory(args[0]) {
		return f.ToOptions(c, args, streams)
	}
	if err := errors.Join(f.Write.Validate(), checkDirectory(c), flags.CheckFiles(c.Flags())); err != nil {
		return nil, err
	}
	if err := file.CheckDirectory(args[0]); err != nil {
		return nil, fmt.Errorf("%s: %w", args[0], err)
	}
	files, err := journal.Files(args[0])
	if err != nil {
		return nil, err
	}
	var runs []clusterRun
	for _, path := range slices.Backward(files) {
		j, err := journal.Glance(path)
		if err != nil {
			return nil, err
		}
		if run := j.Run(); run.Written == 0 {
			continue
		}
		one := *f
		one.Config = flags.ConfigOf(f.Config, j.Header.Run.Cluster.Context)
		one.TakeFrom = slices.Clone(f.TakeFrom)
		runs = append(runs, clusterRun{context: j.Header.Run.Cluster.Context, open: func(m *writtenCluster) (runner, error) {
			one.cluster = m
			return one.ToOptions(c, append([]string{path}, args[1:]...), streams)
		}})
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("%s: %w", args[0], errNothingWritten)
	}
	out, err := newWriteFleet(c, writeFlags{&f.Evaluate, &f.Write, f.Output, f.Report}, runs, streams)
	if err == nil {
		out.resume = c.CommandPath() + " " + wording.ShellQuote(args[0])
	}
	return out, err
}
