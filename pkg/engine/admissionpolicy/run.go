package admissionpolicy

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// run is one round of all policies on one object.
type run struct {
	ctx    context.Context // of the policy that is evaluated
	whole  context.Context
	target engine.Target // as requested: all policies are matched against it
	world  *engine.World
	object *unstructured.Unstructured // with the changes of the policies so far

	explains    bool    // all reasons are wanted
	asksUser    bool    // some policy asks who makes the request
	nobody      error   // why that is not known; nil where it is
	excluded    string  // what no policy ever sees; empty where they do
	again       invoked // in the second round, what runs again
	reinvocable invoked
	applied     bool   // some mutation was applied, whether or not it changed anything
	denied      string // the first policy for which the object would be denied
	steps       []engine.Step

	requests [2]*request // by whether the object is evaluated as if it were created
}

func newRun(ctx context.Context, t engine.Target, w *engine.World) *run {
	return &run{ctx: ctx, whole: ctx, target: t, world: w, object: t.Object, reinvocable: invoked{}}
}

// unit evaluates a policy with one binding, once for each parameter. An error ends the
// run.
func (r *run) unit(u *unit, sink engine.Sink) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	step := engine.Step{Rule: u.rule()}
	if r.excluded != "" {
		return r.passOver(step, sink, func() error { return fmt.Errorf("an API server never mutates %s by policies", r.excluded) })
	}
	m, err := r.match(u)
	step.AsCreated = m.created
	switch {
	case err != nil:
		return r.fail(u, step, err)
	case !m.result.Applies():
		return r.passOver(step, sink, func() error { return r.explain(u, m) })
	}
	params, err := r.params(u)
	var missing *noParameterError
	switch {
	case errors.As(err, &missing) && !missing.denies:
		if r.again == nil {
			step.Outcome, step.Err = engine.Skipped, err
			r.steps = append(r.steps, step)
		}
		return nil
	case err != nil:
		return r.fail(u, step, err)
	}
	for _, p := range params {
		step.Rule = u.refOf(p)
		if r.again != nil && !r.again[step.Rule] {
			continue
		}
		if err := r.invoke(u, step, p); err != nil {
			return err
		}
	}
	return nil
}

// passOver adds the step of a policy that does not match. The second round does not
// repeat it.
func (r *run) passOver(step engine.Step, sink engine.Sink, reason func() error) error {
	if r.again != nil {
		return nil
	}
	step.Outcome, step.AsCreated = engine.NotMatched, false
	if sink.Wants(engine.NotMatched) {
		step.Err = reason()
	}
	r.steps = append(r.steps, step)
	return nil
}

// fail adds the step of a policy that cannot be evaluated: the object would be denied, or
// the failure is ignored. Where this run lacks something, neither is known.
func (r *run) fail(u *unit, step engine.Step, err error) error {
	if ended := r.whole.Err(); ended != nil {
		return ended
	}
	step.Outcome, step.Err = cel.OutcomeOf(err, u.ignores && !isRefused(err))
	if step.Outcome == engine.Denied && r.denied == "" {
		r.denied = u.ref.Policy
	}
	r.steps = append(r.steps, step)
	return nil
}

// isRefused reports whether a server refuses the object whatever the failurePolicy.
func isRefused(err error) bool {
	var undecodable *decodeError
	var another *engine.IdentityError
	return errors.As(err, &undecodable) || errors.As(err, &another)
}

// invoke evaluates a policy with one parameter.
func (r *run) invoke(u *unit, step engine.Step, p *param) error {
	u.traffic.Mark(&step, cel.Reads{Object: r.target.HoldsSecrets(), Metadata: r.target.Tainted, Params: p != nil && p.secret})
	rule, done := limit.Rule(r.whole, step.Rule)
	r.ctx = rule
	defer func() { done(); r.ctx = r.whole }()
	in := r.input(step.AsCreated, p)
	held, err := r.conditions(u, in)
	if err != nil {
		return r.fail(u, step, err)
	}
	if held != nil {
		step.Outcome, step.Err = engine.Skipped, held
		r.steps = append(r.steps, step)
		return nil
	}
	if u.reinvoked {
		r.reinvocable[step.Rule] = true
	}
	if u.asksForNS {
		if in.Namespace, err = r.namespace(); err != nil {
			return r.fail(u, step, err)
		}
	}
	return r.mutate(u, step, in)
}

// conditions returns the condition that is false, if any. A condition that is false
// counts more than one that fails. On a server, conditions do not see the Namespace.
func (r *run) conditions(u *unit, in cel.Input) (*cel.ConditionError, error) {
	if len(u.conditions) == 0 {
		return nil, nil
	}
	e := u.scope.Evaluate(r.ctx, in, cel.MatchBudget())
	var failures []error
	for _, c := range u.conditions {
		holds, err := e.Condition(c.Expression)
		var stopped *cel.LimitError
		switch {
		case err != nil && (cel.Unsupported(err) || errors.As(err, &stopped) || r.ctx.Err() != nil):
			return nil, failedAt(c.Field, err)
		case err != nil:
			failures = append(failures, r.failed(c.Field, r.asks(u, c.Expression), err))
		case !holds:
			return e.Unmet(c.Name, c.Expression), nil
		}
	}
	return nil, engine.JoinErrors(failures)
}

// failed returns the error of an expression. Where the expression asks who makes the
// request, and that is not known, it is unsupported.
func (r *run) failed(field string, asksUser bool, err error) error {
	err = failedAt(field, err)
	if asksUser && r.nobody != nil && !cel.Unsupported(err) {
		return &cel.UnsupportedError{Reason: (&engine.UnknownUserError{Why: r.nobody, Err: err}).Error()}
	}
	return err
}

// asks reports whether an expression of a policy, or a variable that it may use, reads
// who makes the request.
func (r *run) asks(u *unit, x *cel.Expression) bool {
	return r.asksUser && (x.Uses("request.userInfo") || x.Uses("variables") && u.scope.VariablesUse("request.userInfo"))
}

// mutate runs the mutations of a policy, each on the result of the one before. A failure
// does not stop the others.
func (r *run) mutate(u *unit, step engine.Step, in cel.Input) error {
	before := r.object
	var failures []error
	for _, m := range u.mutations {
		in.Object = r.object.Object
		result, err := r.mutation(u, m, in, before.Object)
		if err != nil {
			err = r.failed(m.Field, r.asks(u, m.Expression), err)
			if cel.Unsupported(err) || isRefused(err) || engine.OfThisProgram(err) || r.ctx.Err() != nil {
				r.object = before
				return r.fail(u, step, err)
			}
			failures = append(failures, err)
			continue
		}
		r.applied = true
		r.object = &unstructured.Unstructured{Object: result.Object}
		step.Warnings = append(step.Warnings, result.Warnings...)
	}
	changed := !diff.Equal(before.Object, r.object.Object, diff.Type{})
	if !changed {
		r.object = before
	}
	if len(failures) > 0 && (!u.ignores || !changed) {
		return r.fail(u, step, engine.JoinErrors(failures))
	}
	for _, err := range failures {
		step.Warnings = append(step.Warnings, engine.Warning(cel.Ignored(err).Error()))
	}
	step.Outcome = engine.Unchanged
	if changed {
		step.Outcome, step.After = engine.Changed, r.object
		r.target.Tainted = r.target.Tainted || step.Confidential
	}
	if changed || r.again == nil {
		r.steps = append(r.steps, step)
	}
	return nil
}

// mutation runs a mutation of a policy; before is the object before the first one.
func (r *run) mutation(u *unit, m cel.Change, in cel.Input, before map[string]any) (cel.Result, error) {
	var types managedfields.TypeConverter
	if u.needsSchema {
		s, err := r.schema()
		if err != nil {
			return cel.Result{}, err
		}
		types = s.Types
	}
	result, err := u.scope.Evaluate(r.ctx, in, cel.MutationBudget()).Mutate(m.Mutation, types)
	if err == nil {
		err = engine.SameObject(before, result.Object)
	}
	if err == nil && m.JSONPatch {
		err = r.decodable(in.Object, result.Object)
	}
	return result, err
}

// finish hands over the steps and returns the object. An object that would be denied is
// not changed by any policy.
func (r *run) finish(sink engine.Sink) *unstructured.Unstructured {
	engine.HandOver(sink, r.steps, r.denied)
	if r.denied != "" {
		return r.target.Object
	}
	return r.object
}
