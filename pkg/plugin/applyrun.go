package plugin

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
)

// Run previews, verifies, asks and writes. The error says why nothing, or not
// everything, was tried; objects that could not be written are results.
func (o *ApplyOptions) Run(ctx context.Context) (int, error) {
	code, err := o.Metrics.finish(o.run(ctx))
	if errors.Is(err, errInterrupted) || errors.Is(err, context.Canceled) {
		code = ExitInterrupted
	}
	return code, o.Masker.Error(err)
}

func (o *ApplyOptions) run(ctx context.Context) (int, error) {
	e, err := o.compile()
	if err != nil {
		return ExitNothing, err
	}
	if e.broken > 0 {
		return ExitNothing, fmt.Errorf("nothing was written: %s could not be compiled; mend it, or leave it out with --skip", plural(e.broken, "rule or policy"))
	}
	find := o.plan
	if o.Record != nil {
		find = o.recordedTasks
	}
	tasks, summary, err := find(ctx, e)
	if err != nil {
		return ExitNothing, nothingWritten(err)
	}
	o.Executor.Wrote, o.Executor.Count = o.tell, o.count
	err = o.Executor.run(ctx, tasks)
	code := o.Executor.tally.code(e.incomplete(summary) || err != nil)
	if err != nil && len(o.Executor.tally.outcomes) == 0 {
		return code, err // there are no results, not even that there was nothing to do
	}
	return code, errors.Join(o.Results.Close(), err)
}

// plan is the preview: it shows what would change and remembers which objects.
// One that admission would refuse is shown and not written.
func (o *ApplyOptions) plan(ctx context.Context, e *evaluation) ([]*task, engine.Summary, error) {
	var tasks []*task
	summary, err := e.each(ctx, func(c *engine.Change) error {
		if c.Changed() && !c.Denied() {
			tasks = append(tasks, &newEvaluated(e, c).task)
		}
		return o.Preview.Print(*c)
	})
	if err != nil {
		return nil, summary, err
	}
	return tasks, summary, o.Preview.Close(summary)
}

// tell leaves events of a write where mutate-existing rules have made it.
func (o *ApplyOptions) tell(ctx context.Context, t *task, r *apply.Result) {
	if o.Events == nil {
		return
	}
	for _, rule := range t.propagated {
		o.Events.PolicyApplied(ctx, r.Key, rule)
	}
}

// count adds what came of one object to the numbers of the run.
func (o *ApplyOptions) count(t *task, r *apply.Result) { o.Metrics.Written(r, t.rules) }
