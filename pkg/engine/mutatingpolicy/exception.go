package mutatingpolicy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// exceptionSpec is a PolicyException. Its expressions are compiled for each policy that it names, since the
// policy decides which functions they may call.
type exceptionSpec struct {
	Name       string // "namespace/name"
	Report     *policydecode.Report
	Conditions []cel.Source
	// Images and Values are passed to the policy's expressions; an exception with neither skips the policy.
	Images, Values []string
	Passes         bool // the policy is reported as passed, not as skipped

	policies []policyRef // in any namespace, as in Kyverno
	expires  time.Time   // zero for never
}

type policyRef struct{ kind, name string }

// lintExceptions warns of exceptions that name a missing policy of this language.
func lintExceptions(all []*exceptionSpec, policies []engine.Document) {
	names := map[string]*engine.PolicyNames{kindPolicy: {}, kindNamespacedPolicy: {}}
	for _, p := range policies {
		names[p.Key.Kind].Add(p.Key.Name)
	}
	for _, x := range all {
		for _, ref := range x.policies {
			known := names[ref.kind]
			if known == nil {
				continue
			}
			if err := known.Check(ref.name); err != nil {
				policydecode.Node{Report: x.Report, Path: "spec.policyRefs"}.Lint("%w", err)
			}
		}
	}
}

// decodeException reads an exception. Errors go to the report, which the exception keeps for its expressions.
func decodeException(r *policydecode.Report, d engine.Document) *exceptionSpec {
	root := policydecode.Node{Report: r, Value: d.Object().Object}.Fields()
	spec := root.At("spec").Fields()
	x := &exceptionSpec{
		Name: d.Key.Name, Report: r, Conditions: cel.DecodeNamed(spec.At("matchConditions"), nil),
		Images: spec.At("images").Texts(), Values: spec.At("allowedValues").Texts(),
		Passes: spec.At("reportResult").OneOf("skip", "pass") == "pass",
	}
	if ns := d.Key.Namespace; ns != "" {
		x.Name = ns + "/" + x.Name
	}
	for _, n := range spec.At("policyRefs").List() {
		f := n.Fields()
		ref := policyRef{kind: f.At("kind").Text(), name: f.At("name").Text()}
		if ref.kind == "" || ref.name == "" {
			f.Fail("needs a name and a kind")
		}
		x.policies = append(x.policies, ref)
		f.Done()
	}
	if len(x.policies) == 0 {
		spec.At("policyRefs").Lint("names no policy, so the exception has no effect")
	}
	x.decodeExpiry(spec.At("expiresAt"))
	spec.Accept("properties", "evaluationMode")
	spec.Done()
	root.DoneObject()
	return x
}

func (x *exceptionSpec) decodeExpiry(n policydecode.Node) {
	if n.Text() == "" {
		return
	}
	var err error
	if x.expires, err = time.Parse(time.RFC3339, n.Text()); err != nil {
		n.Fail("must be a time such as 2026-01-31T00:00:00Z: %w", err)
	}
}

// Partial reports whether the exception allows only some images or values.
func (x *exceptionSpec) Partial() bool { return len(x.Images)+len(x.Values) > 0 }

// exception is a PolicyException, compiled for a rule.
type exception struct {
	*exceptionSpec
	scope      *cel.Scope
	conditions []*cel.Expression
}

// excepted returns the images and values that exceptions allow. The error is an *engine.SkippedError if an
// exception skips the rule; as in Kyverno, it does so even if another exception fails.
func (e *execution) excepted() (images, values []string, err error) {
	var full []string
	passes := false
	for _, x := range e.rule.exceptions {
		if !x.expires.IsZero() && !e.world.Now.Before(x.expires) {
			continue
		}
		err := x.scope.Evaluate(e.ctx, e.input(), cel.MatchBudget).Holds(x.conditions)
		switch {
		case engine.OutcomeOf(err) == engine.Skipped, err != nil && len(full) > 0:
		case err != nil:
			return nil, nil, fmt.Errorf("PolicyException %s: %w", x.Name, err)
		case x.Partial():
			images, values = append(images, x.Images...), append(values, x.Values...)
		default:
			full = append(full, x.Name)
			passes = passes || x.Passes
		}
	}
	if len(full) == 0 {
		return images, values, nil
	}
	verb := "skipped"
	if passes {
		verb = "passed"
	}
	slices.Sort(full)
	return nil, nil, &engine.SkippedError{Reason: fmt.Sprintf("rule is %s due to policy exception: %s", verb,
		strings.Join(full, ", "))}
}
