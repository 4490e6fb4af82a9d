package apply

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// Evaluation evaluates the policies of a run.
type Evaluation interface {
	// Each evaluates every object of the run, once, and hands over each change.
	Each(ctx context.Context, emit func(*engine.Change) error) (evaluation.Summary, error)
	// Evaluate evaluates one object as it is now. Scoped reports whether the rules
	// that match the object itself are evaluated.
	Evaluate(ctx context.Context, t engine.Target, scoped bool) (*engine.Change, error)
}

// NewTask returns the task for an evaluated change, which has been shown.
func NewTask(r Evaluation, c *engine.Change) *Task {
	entry := plan.NewEntry(c)
	t := &Task{Key: c.Target.Key, Entry: &entry, Endpoints: EndpointsOf(c)}
	t.evaluate(r, c, c.Incomplete())
	return t
}

// evaluate has a task evaluate its object again, which it does not hold, as it was evaluated. Incomplete says that a rule had failed
// already when the change was shown.
func (t *Task) evaluate(r Evaluation, c *engine.Change, incomplete bool) {
	version, scoped := c.Target.Key.Version, c.Scoped
	target := engine.Target{Namespace: c.Target.Namespace, Mapping: c.Target.Mapping, Request: c.Target.Request}
	if c.Target.OldObject != c.Target.Object {
		target.OldObject = c.Target.OldObject // that of a request that was made
	}
	t.Change = func(ctx context.Context, live *unstructured.Unstructured) (*engine.Change, error) {
		target := target
		target.Key, target.Object = t.Key, live
		target.Key.Version, target.Key.UID = version, cmp.Or(t.Key.UID, live.GetUID())
		if target.Request.Operation != engine.OperationCreate {
			target.OldObject = cmp.Or(target.OldObject, live)
		}
		now, err := r.Evaluate(ctx, target, scoped)
		switch {
		case err != nil:
			return nil, err
		case now.Denied():
			return nil, &ObjectError{Key: t.Key, Err: errDeniedNow}
		case now.Incomplete() && !incomplete:
			return nil, &ObjectError{Key: t.Key, Err: errFailedNow}
		}
		return now, nil
	}
	t.Rules, t.Propagated = changing(c)
	t.Autoscaled = slices.DeleteFunc(slices.Clone(c.Impacts), func(i engine.Impact) bool { return i.Code != engine.ImpactAutoscaled })
}

// EndpointsOf returns the endpoints to which a change may have to be sent.
func EndpointsOf(c *engine.Change) []string {
	var out []string
	for i := range c.Fields {
		if endpoint := request.EndpointOf(c.Fields[i].Path); !slices.Contains(out, endpoint) {
			out = append(out, endpoint)
		}
	}
	return out
}

// Reasons not to write an object whose change was shown.
var (
	errDeniedNow = errors.New("the object has changed, and admission would refuse it now")
	errFailedNow = errors.New("the object has changed, and a rule fails on it now; preview it again")
)

// changing returns the rules that changed the object, and those of them that another
// object triggered, each once.
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
