package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/plan"
)

// Contexts previews several clusters at once, with a plan for each, asks once, and applies the plans one
// after the other.
type Contexts struct {
	*preview.Options
	flags   *Flags
	command *cobra.Command
	dir     string // of the plans and journals
}

// toFleet returns the options of an apply-existing on several clusters.
func (f *Flags) toFleet(c *cobra.Command, args []string) (_ *Contexts, err error) {
	if err := errors.Join(f.Write.Validate(), f.checkContexts(c)); err != nil {
		return nil, err
	}
	o := &Contexts{flags: f, command: c}
	if f.Rehearses() {
		o.dir, err = os.MkdirTemp("", "kubectl-mutate-*")
	} else if o.dir, err = journal.Directory(); err == nil {
		o.dir = filepath.Join(o.dir, journal.FleetName(time.Now(), journal.NewID()))
	}
	if err != nil {
		return nil, err
	}
	first := preview.Flags{
		Evaluate: f.Evaluate, Output: f.Output, Contexts: f.Contexts, ExitCode: true,
		Save: o.dir, Write: &f.Write,
	}
	first.Metrics = "" // the writes count
	if !formats.ForPeople(f.Output.Format) ||
		slices.ContainsFunc(f.Report.Reports, func(text string) bool { return strings.HasSuffix(text, "=-") }) {
		first.Output.Format, first.Output.Query, first.Streams.Out = formats.Summary, "", f.Streams.ErrOut
	}
	if o.Options, err = first.ToOptions(c, args); err != nil {
		return nil, errors.Join(err, o.remove())
	}
	return o, nil
}

// checkContexts returns an error for flags that contradict --contexts.
func (f *Flags) checkContexts(c *cobra.Command) error {
	switch {
	case slices.ContainsFunc(offline, c.Flags().Changed):
		return errOffline
	case f.Record.Given():
		return errors.New("a plan, and a journal, names its cluster: leave out --contexts")
	case c.Flags().Changed("journal"):
		return errors.New("--journal names one file, and each cluster of --contexts has a journal: leave it out, and the run prints where they are")
	}
	return nil
}

// remove removes the plans of a run that wrote nothing.
func (o *Contexts) remove() error { return os.RemoveAll(o.dir) }

// Run previews, asks and writes, and returns the exit code.
func (o *Contexts) Run(ctx context.Context) (int, error) {
	code, err := o.Options.Run(ctx)
	if err == nil && code == process.ExitNothing {
		err = errors.New("none of the clusters was evaluated")
	}
	if err != nil {
		return max(code, process.ExitNothing), errors.Join(write.NothingWritten(err), o.remove())
	}
	runs, err := o.confirmed(ctx)
	if err != nil {
		return process.ExitNothing, errors.Join(err, o.remove())
	}
	f := o.flags
	all, err := f.NewWriteFleet(o.command, runs, "", false)
	if err != nil {
		return process.ExitNothing, errors.Join(err, o.remove())
	}
	if f.Rehearses() {
		code, err = all.Run(ctx)
		return code, errors.Join(err, o.remove())
	}
	root := o.command.Root().CommandPath()
	all.resume = o.command.CommandPath() + " --resume " + wording.ShellQuote(o.dir)
	code, err = all.Run(ctx)
	if files, unread := journal.Files(o.dir); err == nil && len(files) == 0 {
		return code, errors.Join(unread, o.remove())
	}
	fmt.Fprintf(o.ErrOut, "Plans and journals: %s\nTo undo: %s undo %s\n", o.dir, root, wording.ShellQuote(o.dir))
	return code, err
}

// confirmed returns the run on each cluster after the user has confirmed all. Known failures on one cluster
// are an error before any write to the others, unless the user wants otherwise.
func (o *Contexts) confirmed(ctx context.Context) (runs []ClusterRun, err error) {
	f := o.flags
	var broken []string
	for i, m := range o.Clusters.Members {
		run, err := f.planned(o.command, filepath.Join(o.dir, plan.FileName(i+1, m.Name)))
		if err != nil {
			return nil, write.NothingWritten(err)
		}
		end, _ := m.End.(output.Summary)
		switch {
		case run.err != nil:
			broken = append(broken, m.Name+" was not evaluated")
		case end.Refused > 0 && !f.SkipRejected:
			broken = append(broken, fmt.Sprintf("%s refuses %s", m.Name, wording.Plural(end.Refused, "object")))
		}
		run.shown = true
		runs = append(runs, run)
	}
	if len(broken) > 0 && f.OnError != flags.ContinueOnError {
		return nil, fmt.Errorf("nothing was written: %s; leave such clusters out of --contexts, or write to the others with --on-error continue", strings.Join(broken, ", "))
	}
	return runs, f.confirmFleet(ctx, runs, o.ErrOut)
}

// confirmFleet asks once about the runs on all clusters. If one of them exceeds --max-changes, the user must
// type the total.
func (f *WriteFlags) confirmFleet(ctx context.Context, runs []ClusterRun, errOut io.Writer) error {
	prompt := write.NewPrompt(f.Streams.In, errOut, cluster.Info{})
	prompt.Yes, prompt.MaxChanges = f.Yes, f.MaxChanges
	objects, most := 0, f.MaxChanges
	var where, many []string
	for _, run := range runs {
		if run.Writes == 0 || run.Open == nil {
			continue
		}
		objects, where = objects+run.Writes, append(where, fmt.Sprintf("%s %d", run.Context, run.Writes))
		if most == 0 || run.Writes <= most {
			continue
		}
		if many = append(many, run.Context); f.Yes && !f.Rehearses() {
			return fmt.Errorf("%s: %w", run.Context, prompt.ConfirmMany(ctx, run.Writes))
		}
	}
	if objects == 0 || f.Rehearses() {
		return nil
	}
	question := fmt.Sprintf("Write %s on %s (%s)?", wording.Plural(objects, "object"),
		wording.Plural(len(where), "cluster"), engine.Few(where))
	if len(many) == 0 {
		return prompt.Confirm(ctx, question)
	}
	return prompt.ConfirmWord(ctx, fmt.Sprintf("%s There are more than --max-changes %d on %s.", question, most, engine.Few(many)), strconv.Itoa(objects))
}
