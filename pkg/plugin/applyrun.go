package plugin

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
)

// Run previews, verifies, asks and writes, and returns the exit code. The error says why
// nothing, or not everything, was tried; objects that could not be written are results.
func (o *ApplyOptions) Run(ctx context.Context) (int, error) {
	code, err := o.run(ctx)
	code, err = reported(o.Reports, code, err)
	code, err = o.Metrics.finish(code, err)
	if interrupted(err) {
		code = ExitInterrupted
	}
	return code, err
}

func (o *ApplyOptions) run(ctx context.Context) (int, error) {
	e, err := o.Compile()
	if err != nil {
		return ExitNothing, err
	}
	code, err := o.write(ctx, e)
	return code, errors.Join(err, printProblems(o.Reports, e.Problems()))
}

// write makes the changes of compiled policies.
func (o *ApplyOptions) write(ctx context.Context, e *preview.Run) (int, error) {
	if e.Broken() > 0 {
		return ExitNothing, fmt.Errorf("nothing was written: %s", e.BrokenText())
	}
	if err := errors.Join(o.Unread.Errs...); err != nil {
		return ExitNothing, apply.NothingWritten(err)
	}
	find := o.plan
	if o.Record != nil {
		find = o.recordedTasks
	}
	summary, err := find(ctx, e)
	if err != nil {
		return ExitNothing, apply.NothingWritten(err)
	}
	if o.Executor.OnWrite = o.recordEvents; o.Executor.OnResult == nil {
		o.Executor.OnResult = o.count
	}
	tally, err := o.Executor.Run(ctx, nil)
	if o.Record != nil {
		tally.Written, tally.Failed = tally.Written+o.Record.Written, tally.Failed+o.Record.Failed
	}
	code := writtenCode(tally, e.Incomplete(summary) || err != nil)
	if err != nil && len(tally.Outcomes) == 0 {
		return code, err // there are no results, not even that there was nothing to do
	}
	return code, errors.Join(o.Shown.Close(), err)
}

// plan is the preview: it prints the changes and keeps a task for each. A change that
// admission would deny is printed and not written.
func (o *ApplyOptions) plan(ctx context.Context, e *preview.Run) (evaluation.Summary, error) {
	summary, err := e.Each(ctx, func(c *engine.Change) error {
		if c.Changed() && !c.Denied() {
			o.Executor.Keep(apply.NewTask(e, c), c)
		}
		return o.print(output.Evaluated{Change: c})
	})
	if err != nil {
		return summary, err
	}
	return summary, o.print(output.Summary{Summary: summary})
}

// recordedTasks keeps a task for each change that was planned, and prints it as it is evaluated now.
func (o *ApplyOptions) recordedTasks(ctx context.Context, e *preview.Run) (evaluation.Summary, error) {
	failed := o.Record.Tasks(ctx, e, o.Executor)
	shown, err := o.Record.Each(e.Rules(), func(c *engine.Change) error { return o.print(output.Evaluated{Change: c}) })
	if err == nil {
		err = o.print(output.Summary{Summary: shown})
	}
	return shown, errors.Join(failed, err)
}

// recordEvents records an event for each mutate-existing rule that changed a written object.
func (o *ApplyOptions) recordEvents(ctx context.Context, t *apply.Task, r *apply.Result) {
	if o.Events == nil {
		return
	}
	for _, rule := range t.Propagated {
		o.Events.PolicyApplied(ctx, r.Key, rule)
	}
}

// count adds the outcome of one object to the metrics of the run.
func (o *ApplyOptions) count(t *apply.Task, r *apply.Result) { o.Metrics.Written(r, t.Rules) }
