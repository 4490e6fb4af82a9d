package plugin

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// task is one object that is to be written. What is wanted of it is asked for
// when it is verified, and again when somebody else was faster; never twice at
// the same time.
type task struct {
	key engine.ObjectKey
	// want says how the object should be. It keeps entry and rules up to date.
	want apply.Want
	// entry is what the journal says of it.
	entry plan.Entry
	// rules are those that change the object, and propagated those of them that
	// another object set off; each once.
	rules, propagated []engine.RuleRef

	// autoscaled says which autoscalers set the fields that change.
	autoscaled []engine.Impact

	// reaches are the endpoints that its fields go to, as far as is known: "" for
	// the object itself, "status".
	reaches []string

	verified *apply.Verified
	// mark is its place in a journal that was taken up, and trace what a write
	// that was begun then would have left behind; nil where there was none.
	// statusLeft tells that all but the part for /status is stored.
	mark       int
	trace      *journal.Attempt
	statusLeft bool
}

// evaluated is the task of an object that policies change. It holds no object:
// that is read afresh.
type evaluated struct {
	task
	evaluation *evaluation
	target     engine.Target
	scoped     bool
	incomplete bool // a rule had failed already when the change was shown
}

func newEvaluated(e *evaluation, c *engine.Change) *evaluated {
	t := &evaluated{evaluation: e, target: c.Target, scoped: c.Scoped, incomplete: c.Incomplete()}
	t.target.Object, t.target.OldObject = nil, nil
	t.key = c.Target.Key
	t.want = t.evaluate
	t.rules, t.propagated = changing(c)
	t.reaches, t.autoscaled = reaches(c), autoscaled(c)
	return t
}

// reaches are the endpoints that a change may have to be sent to.
func reaches(c *engine.Change) []string {
	var out []string
	for i := range c.Fields {
		part := ""
		if name := c.Fields[i].Path[0].FieldName; name != nil && *name == "status" {
			part = "status"
		}
		if !slices.Contains(out, part) {
			out = append(out, part)
		}
	}
	return out
}

func autoscaled(c *engine.Change) []engine.Impact {
	return slices.DeleteFunc(slices.Clone(c.Impacts), func(i engine.Impact) bool { return i.Code != engine.ImpactAutoscaled })
}

// evaluate is what the task wants of a fresh copy of its object.
func (t *evaluated) evaluate(ctx context.Context, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	c, err := t.again(ctx, live)
	if err != nil {
		return nil, err
	}
	t.entry = plan.NewEntry(c)
	t.rules, t.propagated = changing(c)
	return c.After, nil
}

// Why one object is not written although its change was shown.
var (
	errDeniedNow = errors.New("the object has changed, and admission would refuse it now")
	errFailedNow = errors.New("the object has changed, and a rule fails on it now; preview it again")
)

// again evaluates a fresh copy of an object. The change is nil with an error.
func (t *evaluated) again(ctx context.Context, live *unstructured.Unstructured) (*engine.Change, error) {
	target := t.target.With(live)
	if target.Request.Operation != engine.OperationCreate {
		target.OldObject = live
	}
	c, err := t.evaluation.Evaluate(ctx, target, t.scoped)
	switch {
	case err != nil:
		return nil, err
	case c.Denied():
		return nil, &apply.ObjectError{Key: t.key, Err: errDeniedNow}
	case c.Incomplete() && !t.incomplete:
		return nil, &apply.ObjectError{Key: t.key, Err: errFailedNow}
	}
	return c, nil
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
