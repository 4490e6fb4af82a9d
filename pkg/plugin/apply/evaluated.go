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

// evaluated is how an object was evaluated that policies change. It does not hold the object:
// that is read again.
type evaluated struct {
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
	t := newEvaluatedTask(r, c, c.Incomplete())
	entry := plan.NewEntry(c)
	t.Entry = &entry
	return t
}

func newEvaluatedTask(r Evaluation, c *engine.Change, incomplete bool) *Task {
	of := &c.Target
	t := &Task{Key: of.Key}
	e := &evaluated{
		run: r, version: t.Key.Version, namespace: of.Namespace, mapping: of.Mapping, request: of.Request, scoped: c.Scoped, incomplete: incomplete,
	}
	if of.OldObject != of.Object {
		e.old = of.OldObject
	}
	t.Change = func(ctx context.Context, live *unstructured.Unstructured) (*engine.Change, error) {
		return e.again(ctx, t.Key, live)
	}
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
func (e *evaluated) again(ctx context.Context, key engine.ObjectKey, live *unstructured.Unstructured) (*engine.Change, error) {
	target := engine.Target{Key: key, Object: live, Namespace: e.namespace, Mapping: e.mapping, Request: e.request}
	target.Key.Version, target.Key.UID = e.version, cmp.Or(key.UID, live.GetUID())
	if target.Request.Operation != engine.OperationCreate {
		target.OldObject = cmp.Or(e.old, live)
	}
	c, err := e.run.Evaluate(ctx, target, e.scoped)
	switch {
	case err != nil:
		return nil, err
	case c.Denied():
		return nil, &ObjectError{Key: key, Err: errDeniedNow}
	case c.Incomplete() && !e.incomplete:
		return nil, &ObjectError{Key: key, Err: errFailedNow}
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
