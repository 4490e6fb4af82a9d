package kyverno

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/patching"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// execution is the evaluation of one rule on one object, for one operation.
type execution struct {
	ctx      context.Context // an execution does not outlive its call
	end      func()          // called at the end
	world    *engine.World
	rule     *rule
	matched  match.Candidate // the trigger, as the match block sees it
	onTarget bool            // the rule changes another object than the matched one
	subject  *engine.Target
	sink     engine.Sink
	visited  int             // elements of foreach lists
	why      *engine.Reasons // collects why nothing changes; may be nil
	given    map[string]any  // the user's values

	scope        *variables.Scope // of the rule; nil before begin
	confidential bool             // as in engine.Step
}

func newExecution(ctx context.Context, w *engine.World, r *rule, t *engine.Target,
	sink engine.Sink,
) *execution {
	e := &execution{
		ctx: ctx, end: func() {}, world: w, rule: r, sink: sink,
		matched: match.Candidate{Target: t, Context: ctx, World: w, Explain: sink.Wants(engine.NotMatched)},
		given:   r.policy.inputs.values.Given(r.policy.name, r.written, t.Key.Name),
	}
	e.subject = t
	return e
}

// begin creates the scope of the rule's variables on this object, and starts the rule's clock.
func (e *execution) begin() *variables.Scope {
	e.ctx, e.end = limit.Rule(e.ctx, e.rule.ref)
	if e.sink.Wants(engine.Unchanged) {
		e.why = engine.NewReasons()
	}
	in := jmespath.New(e.world.Now, e.world.SeedOf(e.rule.ref, e.matched.Key, e.subject.Key),
		limit.ClockOf(e.ctx))
	s := variables.NewScope(in)
	e.scope = s
	if r := e.rule; !r.asksTrigger && len(r.targets)+len(r.context)+len(r.exceptions) == 0 {
		return s // nothing asks for a variable
	}
	if e.matched.HoldsSecrets() {
		s.HoldSecret("request", e.matched.Tainted)
		s.HoldSecret("images", e.matched.Tainted)
	}
	if e.onTarget && e.subject.HoldsSecrets() {
		s.HoldSecret("target", e.subject.Tainted)
	}
	s.Set("request", e.request(e.matched.Object.Object))
	account, namespace := serviceAccount(e.matched.Request.User.Username)
	s.Set("serviceAccountName", account)
	s.Set("serviceAccountNamespace", namespace)
	for name, value := range e.given {
		if name != "request" && name != "images" {
			s.Set(name, value)
		}
	}
	images := sync.OnceValues(e.images) // each element of a foreach needs them
	s.Define("images", func(*variables.Scope) (any, error) { return images() })
	e.define(s, e.rule.context)
	return s
}

// define adds context entries to a scope, without loading them.
func (e *execution) define(s *variables.Scope, entries Entries) {
	in := e.inputs()
	entries.Define(s, &Sources{Context: e.ctx, World: e.world, Globals: in.globals, Values: &in.values},
		e.isGiven)
}

// images returns the images of the matched object, overlaid with the user's.
func (e *execution) images() (any, error) {
	found := jmespath.Images(e.matched.Object.Object, e.matched.Key.GroupKind)
	if given, isGiven := e.given["images"]; isGiven {
		return variables.Over(found, given), nil
	}
	if found == nil {
		return nil, &jmespath.NotFoundError{Key: "images"}
	}
	return found, nil
}

// request returns the admission request that variables see, with a state of the matched object.
func (e *execution) request(object map[string]any) map[string]any {
	// a subresource may have another kind than its resource
	key, kind := e.matched.Key, e.matched.Object.GroupVersionKind()
	request := map[string]any{
		"operation": string(e.matched.Operation),
		"object":    object,
		"oldObject": nil,
		"name":      key.Name,
		"namespace": match.NamespaceOf(e.matched.Object),
		"kind":      typeFields(kind.Group, kind.Version, "kind", kind.Kind),
	}
	if u := e.matched.Request.User; !u.Empty() {
		request["userInfo"] = engine.UserInfoFields(&authenticationv1.UserInfo{
			Username: u.Username,
			Groups:   u.Groups,
		})
	}
	if e.matched.Request.DryRun {
		request["dryRun"] = true
	}
	if key.Subresource != "" {
		request["subResource"] = key.Subresource
	}
	if m := e.matched.Mapping; m != nil {
		request["resource"] = typeFields(m.Resource.Group, m.Resource.Version, "resource", m.Resource.Resource)
	}
	if old := cmp.Or(e.matched.OldObject, e.matched.Object); e.matched.Operation != engine.OperationCreate {
		request["oldObject"] = old.Object
	}
	if given := mapping(e.given["request"]); given != nil {
		request = mapping(variables.Over(request, given))
	}
	// only the old object is left, as in Kyverno
	if request["operation"] == string(engine.OperationDelete) {
		request["object"] = request["oldObject"]
	}
	return request
}

// types are the results of typeFields, which all requests share.
//
//nolint:gochecknoglobals // a cache of what never changes
var types sync.Map

// typeFields returns a GroupVersionKind, or a GroupVersionResource, as a request has it.
func typeFields(group, version, key, name string) any {
	of := [...]string{group, version, key, name}
	fields, known := types.Load(of)
	if !known {
		fields, _ = types.LoadOrStore(of, map[string]any{"group": group, "version": version, key: name})
	}
	return fields
}

// serviceAccount splits "system:serviceaccount:NAMESPACE:NAME"; other users have none.
func serviceAccount(username string) (name, namespace string) {
	parts := strings.Split(username, ":")
	if len(parts) < 4 || parts[0] != "system" || parts[1] != "serviceaccount" {
		return "", ""
	}
	return parts[3], parts[2]
}

// meets returns an *engine.SkippedError if the preconditions do not hold.
func (e *execution) meets(c *match.Conditions, s *variables.Scope, field string) error {
	err := c.Check(s)
	if unmet := (*match.UnmetError)(nil); errors.As(err, &unmet) {
		return &engine.SkippedError{Reason: field + " not met", Err: unmet}
	}
	if err != nil {
		return &RuleError{field, withDefault(err)}
	}
	return nil
}

// withDefault adds a hint to the error of a condition that reads an absent key: how to make it optional.
func withDefault(err error) error {
	var unresolved *variables.ResolveError
	var absent *jmespath.NotFoundError
	if !errors.As(err, &unresolved) || !errors.As(err, &absent) ||
		strings.Contains(unresolved.Expression, "||") || len(unresolved.Expression) > maxShown {
		return err
	}
	return fmt.Errorf("%w; if the key may be absent, write {{ %s || '' }}", err, unresolved.Expression)
}

// lists returns how the lists of the changed object merge; without a schema, all are replaced.
func (e *execution) lists() *patching.Lists {
	gvk := e.subject.Key.GroupVersionKind()
	s, _ := e.world.Schema(e.ctx, gvk)
	return e.inputs().listsOf(s, gvk)
}

func (r *rule) step(object engine.ObjectKey, o engine.Outcome, err error) engine.Step {
	step := engine.Step{Rule: r.ref, Outcome: o, Err: err}
	if len(r.targets) > 0 {
		step.TriggeredBy = new(object)
	}
	return step
}

func (e *execution) ended(out patchResult, err error) engine.Step {
	step := e.rule.step(e.matched.Key, engine.Unchanged, e.why.Err())
	step.Warnings = out.Warnings
	switch {
	case err != nil:
		step.Outcome, step.Err = outcomeOf(err)
	case !diff.Shared(out.Object, e.subject.Object.Object):
		e.finish(&step, out)
	}
	return e.secrets(step)
}

// finish accepts a changed object, unless its identity has changed.
func (e *execution) finish(step *engine.Step, out patchResult) {
	before := e.subject.Object.Object
	if err := engine.SameObject(before, out.Object); err != nil {
		step.Outcome, step.Err = engine.Failed, &RuleError{"mutate", err}
		return
	}
	step.Outcome = engine.Changed
	step.NotIdempotent = cmp.Or(out.NotIdempotent, e.rule.notIdempotent)
	step.After = &unstructured.Unstructured{Object: out.Object}
	if e.onTarget && e.rule.annotates {
		annotateAppliedPatches(step, e.subject, e.lists().Type())
	}
	if step.Err != nil && !diff.Equal(before, step.After.Object, e.lists().Type()) { // as the server sees it
		step.Err = nil
	}
}

func mapping(v any) map[string]any { m, _ := v.(map[string]any); return m }
