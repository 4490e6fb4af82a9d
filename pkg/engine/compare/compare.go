package compare

import (
	"context"
	"iter"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/openapi"
)

// Side is one of the two sides of a comparison.
type Side int

// The sides, as indexes.
const (
	Old Side = iota
	New
)

// Sides returns both sides in order.
func Sides() [2]Side { return [2]Side{Old, New} }

// String returns "old" or "new".
func (s Side) String() string { return [2]string{"old", "new"}[s] }

// Options tune a comparison.
type Options struct {
	// Workers is as in evaluation.Options.
	Workers int
	// Scope is as in evaluation.Options.
	Scope *engine.Scope
	// Request is simulated for each object. Its operation is taken from Operations.
	Request engine.Request
	// Operations are the operations to compare; the default is UPDATE.
	Operations []engine.Operation
	// Expand is as in evaluation.Options.
	Expand bool
	// ShowSecrets keeps values derived from Secrets in the reasons why rules were held back.
	ShowSecrets bool

	requests bool // the objects are in subresource requests
}

// Comparison compares two compiled sides.
type Comparison struct {
	lanes      []*lane // by operation, the old side first
	selections []engine.Selection
	rules      [2][]engine.RuleRef

	// The state of a comparison of one object.
	sides      [2][]engine.Program
	world      *engine.World
	options    Options
	propagates bool
}

// lane evaluates one side for one operation.
type lane struct {
	side       Side
	operation  engine.Operation
	user       engine.UserInfo // the user of requests without one
	evaluation *evaluation.Evaluation
}

// NewComparison compares two sides, each a set of programs in admission order, in one world.
func NewComparison(sides [2][]engine.Program, w *engine.World, o Options) *Comparison {
	if len(o.Operations) == 0 {
		o.Operations = []engine.Operation{engine.OperationUpdate}
	}
	c := &Comparison{sides: sides, world: w, options: o}
	for side, programs := range sides {
		for _, p := range programs {
			c.rules[side] = append(c.rules[side], p.Rules()...)
			if q, ok := p.(engine.Propagator); ok && q.Propagates() {
				c.propagates = true
			}
		}
	}
	c.selections = evaluation.Selections(slices.Concat(sides[Old], sides[New]), o.Expand)
	for _, operation := range o.Operations {
		for _, side := range Sides() {
			request := o.Request
			request.Operation = operation
			options := evaluation.Options{
				Workers: o.Workers, Scope: o.Scope, Request: request,
				Requests: o.requests, Expand: o.Expand,
			}
			c.lanes = append(c.lanes, &lane{side, operation, o.Request.User, evaluation.New(sides[side], w, options)})
		}
	}
	return c
}

// Unreadable lists the sources and references that could not be read, each once.
func (c *Comparison) Unreadable() []*engine.UnreadableError {
	var out []*engine.UnreadableError
	for _, l := range c.lanes {
		for _, u := range l.evaluation.Unreadable() {
			if !slices.ContainsFunc(out, func(known *engine.UnreadableError) bool { return known.What == u.What }) {
				out = append(out, u)
			}
		}
	}
	return out
}

// Prepare records the effects of the triggers in a source; see evaluation.Evaluation. It reads nothing if no
// rule mutates objects other than its trigger.
func (c *Comparison) Prepare(ctx context.Context, src engine.Source) error {
	for _, l := range c.lanes {
		if err := l.evaluation.Prepare(ctx,
			engine.Altered(src, func(_ context.Context, t engine.Target) engine.Target {
				return l.target(t)
			})); err != nil {
			return err
		}
	}
	return nil
}

// Object compares the sides on one object, which need not exist, in its own world. It also compares the other
// objects that rules change because of it, and returns the worst result, preferring a changed object.
//
// A request with an operation is compared for that operation.
func (c *Comparison) Object(ctx context.Context, w *engine.World, t engine.Target) (*Result, error) {
	o, operation := c.options, t.Request.Operation
	o.requests = t.Key.Subresource != ""
	only := operation != "" && (len(o.Operations) > 1 || o.Operations[0] != operation)
	if only {
		o.Operations = []engine.Operation{operation}
	}
	inside := NewComparison(c.sides, w, o)
	worst, err := inside.worst(ctx, t)
	if worst != nil && only {
		worst.Everywhere = false
	}
	return worst, err
}

func (c *Comparison) worst(ctx context.Context, t engine.Target) (worst *Result, err error) {
	if !c.propagates {
		return c.evaluated(ctx, t)
	}
	if err := c.Prepare(ctx, alone{t}); err != nil {
		return nil, err
	}
	err = c.Run(ctx, alone{t}, func(r *Result) error {
		if worst == nil || r.Verdict.worse(worst.Verdict) ||
			r.Verdict == worst.Verdict && r.Changed() && !worst.Changed() {
			worst = r
		}
		return nil
	})
	return worst, err
}

type alone struct{ target engine.Target }

// Pages implements engine.Source.
func (a alone) Pages(context.Context, []engine.Selection) iter.Seq2[engine.Page, error] {
	return func(yield func(engine.Page, error) bool) { yield(a, nil) }
}

// Len implements engine.Page.
func (a alone) Len() int { return 1 }

// Target implements engine.Page.
func (a alone) Target(int) (engine.Target, error) { return a.target, nil }

func (c *Comparison) evaluated(ctx context.Context, t engine.Target) (*Result, error) {
	changes := make([]*engine.Change, len(c.lanes))
	for i, l := range c.lanes {
		var err error
		if changes[i], err = l.evaluation.Evaluate(ctx, l.target(t), true); err != nil {
			return nil, err
		}
	}
	return c.judge(ctx, changes), nil
}

func (l *lane) target(t engine.Target) engine.Target {
	if t.Written == nil { // a variant
		t.Written, t.Object = t.Object, openapi.AsStored(t.Object)
	}
	if t.Request.User.Empty() {
		t.Request.User = l.user
	}
	return t.As(l.operation)
}
