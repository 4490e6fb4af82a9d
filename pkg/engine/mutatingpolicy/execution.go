package mutatingpolicy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// execution is the evaluation of one rule on one object, for one operation.
type execution struct {
	ctx       context.Context // of the rule; an execution does not outlive its call
	world     *engine.World   // the rule's own view
	rule      *rule
	operation engine.Operation
	subject   engine.Target  // the object that the rule changes
	trigger   *engine.Target // the object of the request: the subject unless onTarget
	secret    bool           // the trigger revealed more than its metadata to a target
	onTarget  bool           // the rule changes another object than the matched one
	resource  schema.GroupVersionResource
	session   *Session // nil until it is needed
	warnings  []engine.Warning
	sink      engine.Sink
}

// start begins the evaluation of a rule on a matched object. The caller must call done.
func (r *rule) start(
	ctx context.Context, t engine.Target, w *engine.World, sink engine.Sink, operation engine.Operation,
) (e *execution, done func()) {
	e = &execution{
		world: w.Watched(), rule: r, operation: operation, subject: t, resource: t.Resource(w), sink: sink,
	}
	e.trigger = &e.subject
	e.ctx, done = limit.Rule(ctx, r.Ref)
	return e, done
}

// simulate evaluates a rule on a matched object, for the simulated operation.
func (r *rule) simulate(
	ctx context.Context, t engine.Target, w *engine.World, sink engine.Sink,
	act func(*execution) (map[string]any, error),
) engine.Step {
	operation := t.Request.Operation
	if t.Request.Open() {
		operation = engine.OperationUpdate
	}
	e, done := r.start(ctx, t, w, sink, operation)
	defer done()
	var object map[string]any
	m, err := e.match()
	if err == nil && m.Applies() && r.policy.targets == nil {
		err = t.Ignored.By(r.Ref)
	}
	switch {
	case err != nil:
	case !m.Applies() && m.Version != "":
		err = &engine.UnsupportedError{Err: fmt.Errorf("the policy is for version %s, and the object was read in %s, for the sake of other policies or because it is so in its file: "+
			"only a server can convert it; --only %s evaluates the policy alone", m.Version, e.subject.Key.Version, e.rule.Ref.Policy)}
	case !m.Applies():
		return e.notMatched(m)
	case e.rule.policy.generated:
		err = &engine.SkippedError{Reason: "Kyverno has generated a MutatingAdmissionPolicy from it, which does the work"}
	default:
		object, err = act(e)
	}
	return e.step(object, err)
}

// match compares the subject with the rule's constraints. A rule that mutates existing objects matches
// whatever its operations, unless the user asks for one: Kyverno installs and scans such a policy without an
// operation.
func (e *execution) match() (cel.Match, error) {
	operation := e.operation
	switch ns := e.rule.policy.Namespace; {
	case e.filtered():
		return cel.NotApplicable(filteredOut), nil
	case ns != "" && e.subject.Object.GetNamespace() != ns:
		return cel.NotApplicable("the policy only sees objects in namespace " + ns), nil
	case operation == engine.OperationDelete && e.rule.policy.targets == nil:
		return cel.NotApplicable("an object that is being deleted is not mutated"), nil
	case operation != engine.OperationDelete && e.rule.policy.existing:
		operation = ""
	}
	return e.matchConstraints(e.rule.Constraints, operation)
}

const filteredOut = "Kyverno's resourceFilters leave the object out"

// filtered reports whether Kyverno's resourceFilters exclude the subject, trigger or target.
func (e *execution) filtered() bool {
	return e.world.Filtered != nil && e.world.Filtered(e.subject.Key)
}

func (e *execution) matchConstraints(c *cel.Constraints, operation engine.Operation) (cel.Match, error) {
	candidate := cel.CandidateOf(e.ctx, &e.subject, e.world, operation)
	if candidate.Resource = e.resource; e.subject.Key.Name == "" {
		candidate.GenerateName = e.subject.Object.GetGenerateName()
	}
	return c.Match(candidate)
}

// notMatched returns the step of a rule whose constraints exclude the subject.
func (e *execution) notMatched(m cel.Match) engine.Step {
	step := e.step(nil, nil)
	step.Outcome = engine.NotMatched
	if e.sink.Wants(engine.NotMatched) {
		step.Err = m.Why()
	}
	return step
}

func (e *execution) input() cel.Input {
	in := cel.Input{
		Object: e.subject.Object.Object, RequestMap: e.request(), Explain: e.sink.Wants(engine.Unchanged),
		ReplaceAtomic: e.rule.policy.replaceAtomic,
	}
	if !e.onTarget {
		if e.operation == engine.OperationDelete { // the request has only the old object
			in.Object = map[string]any{}
		}
		in.OldObject = e.oldObject()
		if e.subject.Namespace != nil {
			in.Namespace = e.subject.Namespace.Object
		}
	}
	if e.session != nil {
		in.Extra = e.session.Bindings()
	}
	return in
}

// begin opens a session if the rule calls functions of the library. The error is about the subject's
// Namespace, if the rule needs it.
func (e *execution) begin() (err error) {
	if e.rule.library {
		e.session = NewSession(e.ctx, e.world, SessionSettings{
			Seed:    e.world.SeedOf(e.rule.Ref, e.trigger.Key, e.subject.Key),
			Entries: e.rule.entries, Namespace: e.rule.policy.Namespace,
		})
	}
	if !e.onTarget && e.rule.Scope.Uses("namespaceObject") {
		e.subject.Namespace, err = e.subject.ReadNamespace(e.ctx, e.world)
	}
	return err
}

// oldObject returns the object before the request; nil on creation.
func (e *execution) oldObject() map[string]any {
	if e.operation == engine.OperationCreate {
		return nil
	}
	return cmp.Or(e.trigger.OldObject, e.trigger.Object).Object
}

// request returns the admission request: an update without a change. As in Kyverno, empty fields are omitted.
func (e *execution) request() map[string]any {
	t := e.trigger
	request := cel.CandidateOf(e.ctx, t, e.world, e.operation).Request(e.rule.AsksUser())
	request["uid"], request["object"], request["oldObject"] = "", t.Object.Object, nil
	if old := e.oldObject(); old != nil {
		request["oldObject"] = old
	}
	if e.operation == engine.OperationDelete {
		request["object"] = nil
	}
	return request
}

// mutate evaluates exceptions, conditions and mutations, in Kyverno's order, and returns the new object. The
// first failing mutation ends the rule and discards its changes.
func (e *execution) mutate(conditions []*cel.Expression) (map[string]any, error) {
	if err := e.begin(); err != nil {
		return nil, err
	}
	images, values, err := e.excepted()
	if err != nil {
		return nil, err
	}
	if e.session != nil {
		e.session.Images, e.session.Values = images, values
	}
	evaluation := e.rule.Scope.Evaluate(e.ctx, e.input(), cel.MutationBudget)
	if err := evaluation.Holds(conditions); err != nil {
		return nil, err
	}
	object := e.subject.Object.Object
	for _, x := range e.rule.Mutations {
		result, err := evaluation.Mutate(x, e.world)
		if err != nil {
			if errors.Is(err, cel.ErrAtomic) {
				err = fmt.Errorf("%w; with evaluation.useServerSideApply, Kyverno 1.19 replaces them", err)
			}
			return nil, err
		}
		e.warnings = append(e.warnings, result.Warnings...)
		object = result.Object
		evaluation.Replace(object)
	}
	return object, e.audit(evaluation)
}

func (e *execution) audit(evaluation *cel.Evaluation) error {
	for _, x := range e.rule.annotations {
		v, err := evaluation.Value(x)
		if err != nil {
			return x.At(err)
		}
		if text, ok := v.Value().(string); ok && text != "" {
			e.warnings = append(e.warnings, engine.Warning(fmt.Sprintf("auditAnnotation %s: %s", x.Name, text)))
		}
	}
	return nil
}

// step returns the subject's step with the current object or an error.
func (e *execution) step(object map[string]any, err error) engine.Step {
	if e.session != nil {
		e.warnings = append(e.warnings, e.session.Warnings...)
	}
	step := engine.Step{Rule: e.rule.Ref, Warnings: e.warnings}
	if e.rule.policy.targets != nil {
		step.TriggeredBy = new(e.trigger.Key)
	}
	e.rule.Mark(&step, e.secrets())
	before := e.subject.Object.Object
	if err == nil && object != nil {
		err = engine.SameObject(before, object)
	}
	changed := err == nil && object != nil && !diff.Same(object, before)
	switch {
	case err != nil:
		step.Outcome, step.Err = e.outcome(err)
	case !changed:
		step.Outcome = engine.Unchanged
	default:
		step.Outcome, step.NotIdempotent = engine.Changed, e.rule.impure
		step.After = &unstructured.Unstructured{Object: object}
	}
	return step
}

// secrets returns which of the rule's possible reads hold values of Secrets.
func (e *execution) secrets() cel.Reads {
	return cel.Reads{
		Object:   e.secret || e.subject.HoldsSecrets() || e.trigger.HoldsSecrets(),
		Metadata: e.secret || e.subject.Tainted || e.trigger.Tainted, Answers: e.world.ReadSecret(),
	}
}

// outcome returns the outcome and the error of a failed step. Admission refuses the object unless the
// failurePolicy ignores the failure; the background has nothing to refuse.
func (e *execution) outcome(err error) (engine.Outcome, error) {
	if e.session != nil && engine.OutcomeOf(err) != engine.Skipped {
		err = e.session.Explain(err)
		err = cmp.Or(e.session.Missing, err)
	}
	if errors.Is(err, cel.ErrTypeMismatch) && strings.HasPrefix(e.rule.Ref.Rule, "autogen-") {
		err = fmt.Errorf("%w; the rule is derived for Pod controllers, in whose expressions Object.metadata is not replaced: "+
			"spec.autogen.podControllers.controllers: [] derives none", err)
	}
	if e.rule.policy.existing {
		return engine.OutcomeOf(err), err
	}
	return cel.OutcomeOf(err, e.rule.FailuresIgnored)
}
