package apply

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
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

// evaluatedTask is the task of an object that policies change. It holds no object:
// that is read again.
type evaluatedTask struct {
	Task
	run        Evaluation
	version    string // in which the object is evaluated
	namespace  *unstructured.Unstructured
	mapping    *meta.RESTMapping
	request    engine.Request
	scoped     bool
	incomplete bool // a rule had failed already when the change was shown
	// old is the object before the request that was made; nil for one that is simulated.
	old *unstructured.Unstructured
}

// NewTask returns the task for an evaluated change, which has been shown.
func NewTask(r Evaluation, c *engine.Change) *Task {
	t := &newEvaluatedTask(r, c).Task
	entry := plan.NewEntry(c)
	t.Entry = &entry
	return t
}

func newEvaluatedTask(r Evaluation, c *engine.Change) *evaluatedTask {
	of := &c.Target
	t := &evaluatedTask{run: r, namespace: of.Namespace, mapping: of.Mapping, request: of.Request, scoped: c.Scoped, incomplete: c.Incomplete()}
	if of.OldObject != of.Object {
		t.old = of.OldObject
	}
	t.Key = of.Key.Own()
	t.version = t.Key.Version
	t.Task.Change = t.again
	t.Rules, t.Propagated = changing(c)
	t.Endpoints, t.Autoscaled = EndpointsOf(c), autoscaled(c)
	return t
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

func autoscaled(c *engine.Change) []engine.Impact {
	return slices.DeleteFunc(slices.Clone(c.Impacts), func(i engine.Impact) bool { return i.Code != engine.ImpactAutoscaled })
}

// Reasons not to write an object whose change was shown.
var (
	errDeniedNow = errors.New("the object has changed, and admission would refuse it now")
	errFailedNow = errors.New("the object has changed, and a rule fails on it now; preview it again")
)

// again evaluates an object as it is now. The change is nil with an error.
func (t *evaluatedTask) again(ctx context.Context, live *unstructured.Unstructured) (*engine.Change, error) {
	if t.run == nil { // a recorded object that the policies do not meet any more
		return &engine.Change{Subject: t.Key, Before: live, After: live}, nil
	}
	target := engine.Target{Key: t.Key, Object: live, Namespace: t.namespace, Mapping: t.mapping, Request: t.request}
	target.Key.Version, target.Key.UID = t.version, cmp.Or(t.Key.UID, live.GetUID())
	if target.Request.Operation != engine.OperationCreate {
		target.OldObject = cmp.Or(t.old, live)
	}
	c, err := t.run.Evaluate(ctx, target, t.scoped)
	switch {
	case err != nil:
		return nil, err
	case c.Denied():
		return nil, &ObjectError{Key: t.Key, Err: errDeniedNow}
	case c.Incomplete() && !t.incomplete:
		return nil, &ObjectError{Key: t.Key, Err: errFailedNow}
	}
	return c, nil
}

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
