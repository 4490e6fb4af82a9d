package plugin

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/fielddiff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/undo"
)

// Run shows what would be put back, verifies it, asks, and writes. The error says
// why nothing, or not everything, was tried; objects that could not be put back
// are results.
func (o *UndoOptions) Run(ctx context.Context) (int, error) {
	code, err := o.run(ctx)
	if errors.Is(err, errInterrupted) || errors.Is(err, context.Canceled) {
		code = ExitInterrupted
	}
	return code, o.Executor.Masker.Error(err)
}

func (o *UndoOptions) run(ctx context.Context) (int, error) {
	tasks, summary, err := o.plan(ctx)
	if err != nil {
		return ExitNothing, nothingWritten(err)
	}
	err = o.Executor.run(ctx, tasks)
	if err == nil && !o.Executor.rehearses() {
		err = o.release(ctx)
	}
	code := o.Executor.tally.code(summary.Incomplete > 0 || err != nil)
	if err != nil && len(o.Executor.tally.outcomes) == 0 {
		return code, err
	}
	return code, errors.Join(o.Results.Close(), err)
}

// plan shows what would be put back, and makes tasks of it.
func (o *UndoOptions) plan(ctx context.Context) ([]*task, engine.Summary, error) {
	summary := engine.NewSummary([]engine.RuleRef{o.rule()})
	var tasks []*task
	var broken error
	err := apply.Each(len(o.Objects), o.Executor.Concurrency,
		func(i int) (*engine.Change, error) { return o.change(ctx, &o.Objects[i]) },
		func(i int, c *engine.Change) (enough bool) {
			if c == nil {
				return true
			}
			summary.Add(c)
			if c.Changed() {
				tasks = append(tasks, o.task(&o.Objects[i], c))
			}
			broken = o.Preview.Print(*c)
			return broken != nil
		})
	if err = errors.Join(err, broken); err != nil {
		return nil, *summary, err
	}
	return tasks, *summary, o.Preview.Close(*summary)
}

// rule is what the previews and results of an undo name as the cause.
func (o *UndoOptions) rule() engine.RuleRef {
	return engine.RuleRef{Dialect: "undo", Policy: o.Journal.Header.ID}
}

var (
	errGone        = errors.New("the object does not exist any more")
	errOtherObject = errors.New("the object was deleted, and another one has its name now")
)

// change is what would be put back of one object.
func (o *UndoOptions) change(ctx context.Context, of *undo.Object) (*engine.Change, error) {
	c := &engine.Change{Subject: of.Object.Key(), Scoped: true}
	live, err := o.Executor.Writer.Server.Get(ctx, c.Subject)
	switch {
	case apierrors.IsNotFound(err):
		o.step(c, engine.Failed, errGone)
		return c, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", c.Subject, err)
	}
	o.Executor.Masker.Learn(live)
	c.Before, c.After = live, live
	c.Target = engine.Target{Key: c.Subject, Object: live}
	if of.Object.UID != "" && of.Object.UID != live.GetUID() {
		o.step(c, engine.Failed, errOtherObject)
		return c, nil
	}
	o.restore(ctx, c, of, live)
	return c, nil
}

// restore fills a change with what is put back, and tells what is not.
func (o *UndoOptions) restore(ctx context.Context, c *engine.Change, of *undo.Object, live *unstructured.Unstructured) {
	r := of.Restore(live)
	typ := engine.TypeOf(ctx, o.Schemas, live.GroupVersionKind())
	for _, f := range fielddiff.Compare(live.Object, r.Want.Object, typ) {
		c.Fields = append(c.Fields, engine.FieldChange{Field: f, Rule: o.rule()})
	}
	if len(c.Fields) > 0 {
		c.After = r.Want
		o.step(c, engine.Changed, nil)
	} else {
		o.step(c, engine.Unchanged, nil)
	}
	for _, kept := range r.Kept {
		o.step(c, engine.Failed, kept)
	}
}

func (o *UndoOptions) step(c *engine.Change, outcome engine.Outcome, why error) {
	s := engine.Step{Rule: o.rule(), Subject: c.Subject, Outcome: outcome, Err: why}
	if outcome == engine.Changed {
		s.After = c.After
		for _, f := range c.Fields {
			s.Fields = append(s.Fields, f.Field)
		}
	}
	c.Steps = append(c.Steps, s)
}

// errChangedMeanwhile ends the undo of an object of which less can be put back than
// was shown.
var errChangedMeanwhile = errors.New("it was changed while this run was under way; run the command again")

// task puts one object back. It holds on to no object: that is read afresh.
func (o *UndoOptions) task(of *undo.Object, c *engine.Change) *task {
	t := &task{key: c.Subject, rules: []engine.RuleRef{o.rule()}, entry: plan.NewEntry(c)}
	t.key.UID = c.Before.GetUID()
	shown := keptPaths(c)
	t.want = func(_ context.Context, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		r := of.Restore(live)
		for _, k := range r.Kept {
			if !shown.Has(k.Path) {
				return nil, &apply.ObjectError{Key: t.key, Err: errChangedMeanwhile}
			}
		}
		return r.Want, nil
	}
	return t
}

// keptPaths are the fields of which it was shown that they are left as they are.
func keptPaths(c *engine.Change) *fieldpath.Set {
	out := fieldpath.NewSet()
	for i := range c.Steps {
		var kept undo.Kept
		if errors.As(c.Steps[i].Err, &kept) {
			out.Insert(kept.Path)
		}
	}
	return out
}
