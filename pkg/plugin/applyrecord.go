package plugin

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// recordedOptions returns the options of a run that a plan or a journal describes.
func (f *ApplyFlags) recordedOptions(c *cobra.Command, args []string, streams genericiooptions.IOStreams) (_ *ApplyOptions, err error) {
	if f.cluster == nil || !f.cluster.shown { // else the plan is of these very flags
		if err := f.Record.Check(c.Flags(), args); err != nil {
			return nil, err
		}
	}
	f.Policies.Recorded = true
	if f.Resume != "" {
		var err error
		if f.Resume, err = journal.Find(f.Resume, currentContext(f.Config), (*journal.Run).Resumable); err != nil {
			return nil, err
		}
		if err := flags.CheckFiles(c.Flags(), f.Resume); err != nil {
			return nil, err
		}
	}
	w, err := factory.Open(&f.Evaluate, streams, f.Output.ShowSecrets, true)
	if err != nil {
		return nil, err
	}
	run, resumed, err := f.load(c, w)
	if err != nil {
		return nil, err
	}
	evaluation, err := w.Repeat(c.Context(), &run.Run)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", run.Name, err)
	}
	o, err := f.newOptions(c, w, evaluation.Request)
	if err != nil {
		return nil, err
	}
	o.evaluating(c, f, evaluation)
	o.Record = run
	o.Executor.Confirmed = f.Plan != "" // which was reviewed
	switch {
	case f.Rehearses():
	case resumed != nil:
		o.Executor.ResumeJournal(resumed)
	default:
		o.Executor.Journal, err = newJournal(w, c, args, run.Run, &f.Write, "")
	}
	return o, err
}

// load reads the plan or journal, and checks that it can be applied here and now. The
// writer is that of a journal.
func (f *ApplyFlags) load(c *cobra.Command, w *factory.Factory) (*apply.RecordedRun, *journal.Writer, error) {
	if f.Plan != "" {
		run, err := loadPlan(f.Plan)
		if err == nil {
			err = w.CheckRun(c.Context(), &run.Run, f.PlanMaxAge)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("nothing was written: %w", err)
		}
		return run, nil, nil
	}
	return f.resume(c, w)
}

func loadPlan(path string) (*apply.RecordedRun, error) {
	p, err := plan.LoadOwn(path)
	if err != nil {
		return nil, err
	}
	return apply.FromPlan(p, path), nil
}
