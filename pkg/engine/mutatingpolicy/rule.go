package mutatingpolicy

import (
	"fmt"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/mutatingpolicy/library"
)

// rule is a compiled policy, or one that is derived from it.
type rule struct {
	ref         engine.RuleRef
	policy      *settings
	constraints *match.Constraints
	scope       *cel.Scope
	entries     *library.Entries

	conditions       []cel.Condition
	targetConditions []cel.Condition
	mutations        []cel.Change
	annotations      []annotation
	target           *cel.Expression // nil unless an expression names the targets
	exceptions       []*exception

	traffic       cel.Traffic
	merges        bool   // it needs the schema of what it changes
	library       bool   // an expression calls what a library.Session answers
	asksOperation bool   // the expressions may depend on the operation
	asksRequest   bool   // an expression names the request
	asksUser      bool   // an expression asks who makes it
	asksNamespace bool   // an expression names the namespaceObject
	impure        string // why another run may have another result
	asks          []engine.Ask
}

// annotation is an auditAnnotation.
type annotation struct {
	key, field string
	expression *cel.Expression
}

// run evaluates a rule on what it matches, for the operation that the run simulates. Where
// that is left open, the object is updated; a rule that may not have run because of the
// operation alone is evaluated again as if the object were created, and that result
// counts if the rule then runs.
func (e *execution) run(r *rule, t engine.Target, sink engine.Sink) engine.Step {
	operation, open := simulated(t)
	e.start(r, t, operation)
	step, byOperation := e.runStarted(sink)
	if !open || !byOperation {
		return step
	}
	e.start(r, t, engine.OperationCreate)
	created, held := e.runStarted(sink)
	unmet := step.Outcome == engine.NotMatched && created.Outcome == engine.Skipped // the reason is what holds it back then
	if !unmet && (held || created.Outcome == engine.NotMatched || created.Outcome == engine.Skipped) {
		return step
	}
	created.AsCreated = true
	return created
}

// simulated returns the operation to evaluate, and whether another may be tried.
func simulated(t engine.Target) (operation engine.Operation, open bool) {
	if o := t.Request.Operation; o != "" && o != engine.OperationAuto {
		return o, false
	}
	return engine.OperationUpdate, true
}

// runStarted evaluates the rule that was started, and reports whether it may not have run
// because of the operation alone.
func (e *execution) runStarted(sink engine.Sink) (step engine.Step, byOperation bool) {
	r := e.rule
	e.explain = sink.Wants(engine.Unchanged)
	result, err := e.match()
	switch {
	case err != nil:
		return e.step(nil, err), false
	case !result.Applies() && result.Version != "":
		return e.step(nil, e.otherVersion(result.Version)), false
	case !result.Applies():
		return e.notMatched(r.constraints, result, sink), result.ByOperation()
	case r.policy.Generated:
		return e.step(nil, &skippedError{Reason: "Kyverno has generated a MutatingAdmissionPolicy from it, which does the work"}), false
	}
	conditions := r.conditions
	if r.policy.Existing {
		conditions = append(slices.Clip(conditions), r.targetConditions...)
	}
	object, err := e.mutate(conditions)
	return e.step(object, err), isSkipped(err) && r.asksOperation
}

// otherVersion is the error of a rule that is for another version of the object, to
// which only a server can convert it.
func (e *execution) otherVersion(version string) error {
	return &cel.UnsupportedError{Reason: fmt.Sprintf("the policy is for version %s, and the object was read in %s, for the sake of other policies or because it is so in its file: "+
		"only a server can convert it; --only %s evaluates the policy alone", version, e.subject.Key.Version, e.rule.ref.Policy)}
}
