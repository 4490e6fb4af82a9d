package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
)

// pending is an object to write: how to evaluate it again, without the object
// itself, which is read afresh.
type pending struct {
	target     engine.Target
	scoped     bool
	incomplete bool // a rule had failed already when the change was shown
}

// Run previews, asks and writes. The error says why nothing, or not everything,
// was tried; objects that could not be written are results.
func (o *ApplyOptions) Run(ctx context.Context) (int, error) {
	code, err := o.Metrics.finish(o.run(ctx))
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
	work, summary, err := o.plan(ctx, e)
	if err != nil {
		return ExitNothing, fmt.Errorf("nothing was written: %w", err)
	}
	w := writing{ApplyOptions: o, evaluation: e, incomplete: e.incomplete(summary)}
	if len(work) > 0 {
		if err := o.Prompt.all(work); err != nil {
			return ExitNothing, err
		}
		if err := w.write(ctx, work); err != nil {
			return w.code(), err
		}
	}
	return w.code(), o.Results.Close()
}

// plan is the preview: it shows what would change and remembers which objects.
// One that admission would refuse is shown and not written.
func (o *ApplyOptions) plan(ctx context.Context, e *evaluation) ([]pending, engine.Summary, error) {
	var work []pending
	summary, err := e.each(ctx, func(c *engine.Change) error {
		if c.Changed() && !c.Denied() {
			p := pending{target: c.Target, scoped: c.Scoped, incomplete: c.Incomplete()}
			p.target.Object, p.target.OldObject = nil, nil
			work = append(work, p)
		}
		return o.Preview.Print(*c)
	})
	if err != nil {
		return nil, summary, err
	}
	return work, summary, o.Preview.Close(summary)
}

// writing is the second half of a run, and what came of it so far.
type writing struct {
	*ApplyOptions
	evaluation      *evaluation
	incomplete      bool // the preview left something open
	written, failed int
}

func (w *writing) write(ctx context.Context, work []pending) error {
	for _, p := range work {
		var last *engine.Change // the one that was written
		result, err := w.Writer.Apply(ctx, p.target.Key, func(ctx context.Context, live *unstructured.Unstructured) (_ *unstructured.Unstructured, err error) {
			if last, err = w.again(ctx, p, live); err != nil {
				return nil, err
			}
			return last.After, nil
		})
		if err != nil {
			w.failed++
			return fmt.Errorf("broke off at %s: %w", p.target.Key, err)
		}
		w.count(&result)
		w.tell(ctx, &result, last)
		if err := w.Results.Print(result); err != nil {
			return err
		}
	}
	return nil
}

// tell leaves word of a write: numbers of the rules that change the object, and,
// where mutate-existing rules have, events. The change is nil where the object
// was not evaluated again.
func (w *writing) tell(ctx context.Context, r *apply.Result, c *engine.Change) {
	var rules, propagated []engine.RuleRef
	if c != nil {
		rules, propagated = changing(c)
	}
	w.Metrics.Written(r, rules)
	written := r.Outcome == apply.Applied || (r.Status != nil && r.Status.Outcome == apply.Applied)
	if w.Events == nil || !written {
		return
	}
	key := r.Key
	key.UID = r.After.GetUID()
	for _, rule := range propagated {
		w.Events.PolicyApplied(ctx, key, rule)
	}
}

// changing are the rules that changed the object, and those of them that another
// object set off, each once.
func changing(c *engine.Change) (all, propagated []engine.RuleRef) {
	add := func(list []engine.RuleRef, r engine.RuleRef) []engine.RuleRef {
		if slices.Contains(list, r) {
			return list
		}
		return append(list, r)
	}
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Outcome != engine.Changed {
			continue
		}
		all = add(all, s.Rule)
		if s.Trigger != (engine.ObjectKey{}) {
			propagated = add(propagated, s.Rule)
		}
	}
	return all, propagated
}

func (w *writing) count(r *apply.Result) {
	switch {
	case r.Outcome == apply.Applied, r.Outcome == apply.Planned:
		w.written++
	case r.Outcome == apply.Declined, r.Err != nil:
		w.failed++
	}
	if r.Status != nil {
		w.count(r.Status)
	}
}

// code is 0 when all went well, else it says whether anything was written at all.
func (w *writing) code() int {
	switch {
	case w.failed == 0 && !w.incomplete:
		return ExitOK
	case w.written == 0:
		return ExitNothing
	}
	return ExitIncomplete
}

// Why one object is not written although its change was shown.
var (
	errDeniedNow = errors.New("the object has changed, and admission would refuse it now")
	errFailedNow = errors.New("the object has changed, and a rule fails on it now; preview it again")
)

// again evaluates a fresh copy of an object. The change is nil with an error.
func (w *writing) again(ctx context.Context, p pending, live *unstructured.Unstructured) (*engine.Change, error) {
	t := p.target.With(live)
	if t.Request.Operation != engine.OperationCreate {
		t.OldObject = live
	}
	c, err := w.evaluation.Evaluate(ctx, t, p.scoped)
	switch {
	case err != nil:
		return nil, err
	case c.Denied():
		return nil, &apply.ObjectError{Key: t.Key, Err: errDeniedNow}
	case c.Incomplete() && !p.incomplete:
		return nil, &apply.ObjectError{Key: t.Key, Err: errFailedNow}
	}
	return c, nil
}
