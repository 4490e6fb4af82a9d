package mutatingpolicy

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"reflect"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/mutatingpolicy/library"
)

// execution is the evaluation of one rule on one object, for one operation.
type execution struct {
	ctx       context.Context   // of the rule; an execution does not outlive its call
	done      func()            // with the rule
	outer     context.Context   // that of the caller
	watched   context.Context   // the same, which notes the use of Secrets
	use       *engine.SecretUse // by functions of the library
	world     *engine.World
	rule      *rule
	operation engine.Operation
	subject   engine.Target  // what the rule changes
	trigger   *engine.Target // what the request is about: the subject unless onTarget
	secret    bool           // the trigger of what is changed on a target gave away more than its metadata
	onTarget  bool           // the rule changes another object than the one it matched
	resource  schema.GroupVersionResource
	candidate match.Candidate  // what was last compared with constraints
	session   *library.Session // nil until it is needed
	warnings  []engine.Warning
	explain   bool // all reasons are wanted
}

func newExecution(ctx context.Context, w *engine.World) *execution {
	e := &execution{outer: ctx, done: func() {}, world: w}
	e.watched, e.use = engine.WatchSecrets(ctx)
	return e
}

// end tells the caller whether a Secret was read.
func (e *execution) end() {
	e.done()
	if e.use.Any() {
		engine.NoteSecret(e.outer)
	}
}

// start begins the evaluation of a rule on what it matches; the one before is over.
func (e *execution) start(r *rule, t engine.Target, operation engine.Operation) {
	*e = execution{done: e.done, outer: e.outer, watched: e.watched, use: e.use, world: e.world, operation: operation, subject: t, resource: match.ResourceOf(&t, e.world)}
	e.timed(r)
	e.trigger = &e.subject
}

// timed starts the clock of a rule.
func (e *execution) timed(r *rule) {
	e.done()
	e.rule = r
	e.ctx, e.done = limit.Rule(e.watched, r.ref)
}

// match compares the subject with what the rule matches. To a rule that mutates
// existing objects each of them counts, whatever operations it names, unless the user
// asks for one: when Kyverno installs or scans such a policy there is none.
func (e *execution) match() (match.Result, error) {
	operation := e.operation
	switch ns := e.rule.policy.Namespace; {
	case e.filtered():
		return filteredOut(), nil
	case ns != "" && e.subject.Object.GetNamespace() != ns:
		return match.NotApplicable("the policy only sees objects in namespace " + ns), nil
	case operation == engine.OperationDelete && e.rule.policy.Targets == nil:
		return match.NotApplicable("an object that is being deleted is not mutated"), nil
	case operation != engine.OperationDelete && e.rule.policy.Existing:
		operation = ""
	}
	return e.matchConstraints(e.rule.constraints, operation)
}

// filtered reports whether Kyverno's resourceFilters leave the subject out. They are for
// triggers and targets alike.
func (e *execution) filtered() bool {
	return e.world.Filtered != nil && e.world.Filtered(e.subject.Key)
}

func filteredOut() match.Result {
	return match.NotApplicable("Kyverno's resourceFilters leave the object out")
}

func (e *execution) matchConstraints(c *match.Constraints, operation engine.Operation) (match.Result, error) {
	e.candidate = match.CandidateOf(e.ctx, &e.subject, e.world, operation)
	if e.candidate.Resource = e.resource; e.candidate.Name == "" {
		e.candidate.GenerateName = e.subject.Object.GetGenerateName()
	}
	return c.Match(&e.candidate)
}

// readNamespace reads the subject's Namespace, where it did not come with the subject.
func (e *execution) readNamespace() error {
	namespace, err := e.subject.ReadNamespace(e.ctx, e.world)
	e.subject.Namespace = namespace
	return err
}

// notMatched is the step of a rule that constraints keep from the subject.
func (e *execution) notMatched(c *match.Constraints, r match.Result, sink engine.Sink) engine.Step {
	step := e.step(nil, nil)
	step.Outcome = engine.NotMatched
	if sink.Wants(engine.NotMatched) {
		step.Err = c.Explain(r, &e.candidate)
	}
	return step
}

// input returns what expressions see.
func (e *execution) input() cel.Input {
	in := cel.Input{Object: e.subject.Object.Object, RequestMap: e.request(), Explain: e.explain}
	if !e.onTarget {
		if e.operation == engine.OperationDelete { // of which the request has the old object alone
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

// begin opens the session that answers the functions of the library, for a rule that calls any. The error is that of the Namespace, for a rule that asks for it.
func (e *execution) begin() error {
	if e.rule.library {
		e.session = library.NewSession(e.ctx, e.world, library.Settings{Seed: e.seed(), Entries: e.rule.entries, Namespace: e.rule.policy.Namespace})
	}
	if e.rule.asksNamespace && !e.onTarget {
		return e.readNamespace()
	}
	return nil
}

// oldObject returns the object before the request; nil on creation.
func (e *execution) oldObject() map[string]any {
	if e.operation == engine.OperationCreate {
		return nil
	}
	return cmp.Or(e.trigger.OldObject, e.trigger.Object).Object
}

// request returns the admission request that expressions see: that of an update without a
// change. As in Kyverno, empty fields are left out.
func (e *execution) request() map[string]any {
	t := e.trigger
	user, nobody := e.requester() // outcome reports it, where it matters
	seen := cel.Request{
		Kind: t.Object.GroupVersionKind(), Resource: match.ResourceOf(t, e.world), // of a request to a subresource the kind may be another one
		Subresource: t.Key.Subresource, Namespace: t.Key.Namespace, Name: t.Key.Name,
		Operation: e.operation, DryRun: t.Request.DryRun, User: user, Nobody: nobody,
	}
	request := seen.Fields()
	request["uid"], request["object"], request["oldObject"] = "", t.Object.Object, nil
	if old := e.oldObject(); old != nil {
		request["oldObject"] = old
	}
	if e.operation == engine.OperationDelete {
		request["object"] = nil
	}
	return request
}

// requester returns who makes the request, if the rule asks; the error says why that is
// not known.
func (e *execution) requester() (authenticationv1.UserInfo, error) {
	if !e.rule.asksUser {
		return authenticationv1.UserInfo{}, nil
	}
	return engine.RequestUser(e.ctx, e.trigger.Request, e.world)
}

// seed returns the seed of the rule's random values on this object. It depends only on the
// seed of the run and on the names involved, not on the order of objects.
func (e *execution) seed() uint64 {
	h := fnv.New64a()
	_ = binary.Write(h, binary.BigEndian, e.world.Seed) // a hash takes everything
	for _, key := range []engine.ObjectKey{e.trigger.Key, e.subject.Key} {
		for _, name := range []string{e.rule.ref.Policy, e.rule.ref.Rule, key.Group, key.Kind, key.Namespace, key.Name} {
			_, _ = io.WriteString(h, name)
			_, _ = h.Write([]byte{0})
		}
	}
	return h.Sum64()
}

// mutate evaluates exceptions, conditions and mutations, in Kyverno's order, and returns
// the new object. The first mutation that fails ends the rule, and nothing of it is kept.
// The error is a *skippedError where an exception skips the rule.
func (e *execution) mutate(conditions []cel.Condition) (map[string]any, error) {
	if err := e.begin(); err != nil {
		return nil, err
	}
	images, values, err := e.excepted()
	if err != nil {
		return nil, err
	}
	if e.session != nil {
		e.session.Allow(images, values)
	}
	evaluation := e.rule.scope.Evaluate(e.ctx, e.input(), cel.MutationBudget())
	unmet, err := e.holds(evaluation, conditions)
	switch {
	case err != nil:
		return nil, err
	case unmet != nil:
		return nil, unmet
	}
	object := e.subject.Object.Object
	for _, m := range e.rule.mutations {
		result, err := evaluation.Mutate(m.Mutation, e.types())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Field, withHint(err))
		}
		e.warnings = append(e.warnings, result.Warnings...)
		object = result.Object
		evaluation.Replace(object)
	}
	return object, e.audit(evaluation)
}

// withHint adds this language's own hint to an error of package cel.
func withHint(err error) error {
	var atomic *cel.AtomicError
	if errors.As(err, &atomic) {
		return fmt.Errorf("%w; with evaluation.useServerSideApply, Kyverno 1.19 replaces them", err)
	}
	return err
}

// audit evaluates the auditAnnotations, which see the mutated object.
func (e *execution) audit(evaluation *cel.Evaluation) error {
	for _, a := range e.rule.annotations {
		v, err := evaluation.Value(a.expression)
		if err != nil {
			return fmt.Errorf("%s: %w", a.field, err)
		}
		if text, ok := v.Value().(string); ok && text != "" {
			e.warnings = append(e.warnings, engine.Warning(fmt.Sprintf("auditAnnotation %s: %s", a.key, text)))
		}
	}
	return nil
}

// types returns the schema by which the server merges objects of the subject's kind; nil
// where it is not known or not needed.
func (e *execution) types() managedfields.TypeConverter {
	if !e.rule.merges || e.world.Reader == nil {
		return nil
	}
	s, err := e.world.Reader.Schema(e.ctx, e.subject.Object.GroupVersionKind())
	if err != nil {
		return nil
	}
	return s.Types
}

// guarded makes a panic the failure of this one rule.
func (e *execution) guarded(run func() engine.Step) (step engine.Step) {
	if err := engine.Guard(func() error { step = run(); return nil }); err != nil {
		return e.step(nil, err)
	}
	return step
}

// step returns the step of the subject: with the object as it is now, or with an error.
func (e *execution) step(object map[string]any, err error) engine.Step {
	if e.session != nil {
		e.warnings = append(e.warnings, e.session.Warnings()...)
	}
	step := engine.Step{Rule: e.rule.ref, Warnings: slices.Clip(e.warnings)}
	if e.onTarget {
		step.Trigger = e.trigger.Key
	}
	e.rule.traffic.Mark(&step, e.secrets())
	before := e.subject.Object.Object
	if err == nil && object != nil {
		err = engine.SameObject(before, object)
	}
	changed := err == nil && object != nil && !reflect.DeepEqual(object, before)
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

// secrets says what of the things that the rule may read holds values of Secrets.
func (e *execution) secrets() cel.Reads {
	return cel.Reads{
		Object:   e.secret || e.subject.HoldsSecrets() || e.trigger.HoldsSecrets(),
		Metadata: e.secret || e.subject.Tainted || e.trigger.Tainted, Answers: e.use.Any(),
	}
}

// outcome returns the outcome and the error of a step that failed. Admission refuses an
// object for which a policy fails, unless its failurePolicy says otherwise; in the
// background there is nothing to refuse.
func (e *execution) outcome(err error) (engine.Outcome, error) {
	_, nobody := e.requester()
	if e.session != nil && !isSkipped(err) {
		err = e.session.Explain(err)
	}
	switch {
	case isSkipped(err):
		return engine.Skipped, err
	case e.session != nil && e.session.Missing() != nil:
		return engine.Unsupported, e.session.Missing()
	case cel.Unsupported(err):
		return engine.Unsupported, err
	case nobody != nil:
		return engine.Unsupported, &engine.UnknownUserError{Why: nobody, Err: err}
	case e.rule.policy.Existing:
		return engine.Failed, err
	}
	return cel.OutcomeOf(err, e.rule.policy.FailuresIgnored)
}
