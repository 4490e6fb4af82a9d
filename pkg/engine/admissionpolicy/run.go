package admissionpolicy

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/openapi"
)

// run is one round of all policies on one object.
type run struct {
	ctx    context.Context // a run does not outlive its call
	target engine.Target   // as requested: all policies match it
	world  *engine.World
	object *unstructured.Unstructured // with the changes of the policies so far
	sink   engine.Sink

	asksUser    bool    // some policy uses request user information
	excluded    string  // why no policy ever sees the object; else empty
	again       invoked // in the second round, the policies to run again
	reinvocable invoked
	applied     bool   // some mutation was applied, even without a change
	denied      string // the first policy that would deny the object
	steps       []engine.Step

	candidate *cel.Candidate // the simulated request, which all policies share
	fields    map[string]any // its fields, for expressions
}

// request returns the simulated request, for matching and expressions.
func (r *run) request() (*cel.Candidate, map[string]any) {
	t := r.target
	operation := t.Request.Operation
	options := "UpdateOptions"
	switch {
	case operation == engine.OperationCreate:
		t.OldObject, options = nil, "CreateOptions"
	case t.Request.Open():
		operation = engine.OperationUpdate
	}
	if isNamespace(t) {
		t.Key.Namespace = t.Key.Name
	}
	c := cel.CandidateOf(r.ctx, &t, r.world, operation)
	fields := c.Request(r.asksUser)
	fields["options"] = map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": options}
	if t.Key.Subresource != "" {
		fields["requestSubResource"] = t.Key.Subresource
	}
	return c, fields
}

func isNamespace(t engine.Target) bool { return t.Key.Group == "" && t.Key.Kind == "Namespace" }

// unit evaluates a policy with one binding, once per parameter. An error ends the run.
func (r *run) unit(u *unit) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	step := engine.Step{Rule: u.rule()}
	if r.excluded != "" {
		r.passOver(step, func() error { return fmt.Errorf("an API server never mutates %s by policies", r.excluded) })
		return nil
	}
	m, err := r.match(u)
	switch {
	case err != nil:
		return r.fail(u, step, err)
	case !m.Applies():
		r.passOver(step, m.Why)
		return nil
	}
	if err := r.target.Ignored.By(step.Rule); err != nil {
		if r.again != nil {
			return nil
		}
		return r.fail(u, step, err)
	}
	params, err := r.params(u)
	switch {
	case engine.OutcomeOf(err) == engine.Skipped && r.again != nil:
		return nil
	case err != nil:
		return r.fail(u, step, err)
	}
	for _, p := range params {
		if step.Rule = u.rule(); p != nil {
			step.Rule = step.Rule.WithParameter(u.params.Kind + " " + p.name)
		}
		if r.again != nil && !r.again[step.Rule] {
			continue
		}
		if err := r.invoke(u, step, p); err != nil {
			return err
		}
	}
	return nil
}

// match compares the request with a policy and its binding. An error means that the result is unknown.
func (r *run) match(u *unit) (cel.Match, error) {
	c := r.candidate
	m, err := u.Constraints.Match(c)
	if err != nil || !m.Applies() {
		return m, err
	}
	version := m.Version
	if u.binding != nil && u.binding.resources != nil {
		m, err = u.binding.resources.Match(c)
		if why := m.Why; why != nil {
			m.Why = func() error { return fmt.Errorf("binding %s: %w", u.binding.name, why()) }
		}
	}
	if err == nil && m.Applies() && version != "" {
		err = &engine.UnsupportedError{Err: fmt.Errorf("the policy is for version %s, and the object is in version %s: only an API server can convert it",
			version, c.Resource.Version)}
	}
	return m, err
}

// passOver adds the step of a policy that does not match, except in the second round.
func (r *run) passOver(step engine.Step, why func() error) {
	if r.again == nil && r.sink.Wants(engine.NotMatched) {
		step.Outcome, step.Err = engine.NotMatched, why()
		r.steps = append(r.steps, step)
	}
}

// fail adds the step of a policy that does not apply or cannot be evaluated.
func (r *run) fail(u *unit, step engine.Step, err error) error {
	if ended := r.ctx.Err(); ended != nil {
		return ended
	}
	step.Outcome, step.Err = cel.OutcomeOf(err, u.FailuresIgnored && !isRefused(err))
	if step.Outcome == engine.Denied && r.denied == "" {
		r.denied = u.Ref.Policy
	}
	r.steps = append(r.steps, step)
	return nil
}

// isRefused reports whether a server refuses the object whatever the failurePolicy.
func isRefused(err error) bool {
	var another *engine.IdentityError
	return errors.Is(err, errUndecodable) || errors.As(err, &another)
}

// invoke evaluates a policy with one parameter. As on a server, conditions do not see the Namespace.
func (r *run) invoke(u *unit, step engine.Step, p *param) error {
	u.Mark(&step,
		cel.Reads{Object: r.target.HoldsSecrets(), Metadata: r.target.Tainted, Params: p != nil && p.secret})
	ctx, done := limit.Rule(r.ctx, step.Rule)
	defer done()
	in := cel.Input{
		Object: r.decoded().Object, Request: r.candidate, RequestMap: r.fields,
		Explain: r.sink.Wants(engine.Unchanged),
	}
	if old := r.candidate.Target.OldObject; old != nil {
		in.OldObject = old.Object
	}
	if p != nil {
		in.Params = p.content
	}
	if err := u.Scope.Evaluate(ctx, in, cel.MatchBudget).Holds(u.Conditions); err != nil {
		return r.fail(u, step, err)
	}
	if u.Reinvoked {
		r.reinvocable[step.Rule] = true
	}
	if u.asksNamespace && !isNamespace(r.target) {
		namespace, err := r.target.ReadNamespace(ctx, r.world)
		if err != nil {
			return r.fail(u, step, err)
		}
		if namespace != nil {
			in.Namespace = namespace.Object
		}
	}
	return r.mutate(ctx, u, step, in)
}

// mutate runs a policy's mutations, each on the result of the previous one. A failure does not stop the
// others.
func (r *run) mutate(ctx context.Context, u *unit, step engine.Step, in cel.Input) error {
	before := r.object
	var failures []error
	for _, x := range u.Mutations {
		given := r.decoded()
		in.Object = given.Object
		result, err := r.mutation(ctx, u, x, in, before.Object)
		switch {
		case err == nil:
			if given != r.object { // the server's decoding is not a change by the policy
				result.Object = diff.AsWritten(r.object.Object, given.Object, result.Object, diff.Type{})
			}
			r.applied, r.object = true, &unstructured.Unstructured{Object: result.Object}
			step.Warnings = append(step.Warnings, result.Warnings...)
		case isRefused(err), engine.OutcomeOf(err) == engine.Unsupported,
			engine.OfThisProgram(err), ctx.Err() != nil:
			r.object = before
			return r.fail(u, step, err)
		default:
			failures = append(failures, err)
		}
	}
	changed := !diff.Equal(before.Object, r.object.Object, diff.Type{})
	if !changed {
		r.object = before
	}
	if len(failures) > 0 && (!u.FailuresIgnored || !changed) {
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

// decoded returns the object for the next mutation: a server decodes each result.
func (r *run) decoded() *unstructured.Unstructured {
	if !r.applied {
		return r.object
	}
	return openapi.AsStored(r.object)
}

// mutation runs one mutation of a policy; before is the object before its first one.
func (r *run) mutation(
	ctx context.Context, u *unit, x *cel.Expression, in cel.Input, before map[string]any,
) (cel.Result, error) {
	result, err := u.Scope.Evaluate(ctx, in, cel.MutationBudget).Mutate(x, r.world)
	if err != nil {
		return result, err
	}
	if err = engine.SameObject(before, result.Object); err == nil && x.JSONPatch {
		err = r.decodable(ctx, in.Object, result.Patched)
	}
	return result, x.At(err)
}
