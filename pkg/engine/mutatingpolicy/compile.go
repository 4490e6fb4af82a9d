package mutatingpolicy

import (
	"fmt"
	"slices"
	"strings"

	celgo "github.com/google/cel-go/cel"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// rule is a compiled policy, or one derived from it.
type rule struct {
	cel.Policy
	policy  *policy
	entries *Entries

	targetConditions []*cel.Expression
	annotations      []*cel.Expression
	target           *cel.Expression // nil unless an expression names the targets
	exceptions       []*exception

	library bool   // an expression calls a function of Session
	impure  string // why another run may have another result
}

type compiler struct {
	keeps        func(...engine.RuleRef) bool
	exceptions   []*exceptionSpec
	entries      *Entries
	environments map[bool]*cel.Environment // of namespaced policies, and of others
}

// compile returns the rule of a policy and its derived ones; none after an error.
func (c *compiler) compile(r *policydecode.Report, d engine.Document) []*rule {
	p := decodePolicy(r, d)
	if len(r.Errs) > 0 || (p.targets != nil && !p.existing) {
		return nil
	}
	environment, err := c.environment(p.Namespace != "")
	if err != nil {
		p.Fail("%w", err)
		return nil
	}
	rules := []*rule{c.rule(p, environment, nil)}
	for _, derived := range p.derivations() {
		if len(r.Errs) == 0 {
			rules = append(rules, c.rule(p, environment, &derived))
		}
	}
	if len(r.Errs) > 0 {
		return nil
	}
	rules[0].refuse()
	if rules[0].impure != "" {
		p.fieldNode("mutations").Lint("%s: each run gives a different result; within one run, preview and apply agree", rules[0].impure)
	}
	if rules[0].AsksUser() {
		p.Node.Finding(engine.AsksUser, engine.RequestUserLint)
	}
	return slices.DeleteFunc(rules, func(x *rule) bool { return !c.keeps(x.Ref) })
}

func (c *compiler) environment(namespaced bool) (*cel.Environment, error) {
	if known := c.environments[namespaced]; known != nil {
		return known, nil
	}
	e, err := cel.NewEnvironment(cel.Options{
		RequestObjects: true, PatchTypes: true, Extensions: LibraryOptions(namespaced),
	})
	if err == nil {
		c.environments[namespaced] = e
	}
	return e, err
}

// rule compiles a policy as written, or as derived for controllers: all of it, so that all errors are
// reported at once. The report marks derived expressions, which are in no file.
func (c *compiler) rule(p *policy, in *cel.Environment, derived *derivation) *rule {
	r := &rule{Policy: p.Policy, policy: p, entries: c.entries}
	failed := func(n policydecode.Node, err error) {
		if n.Rule = r.Ref.Rule; derived != nil {
			err = fmt.Errorf("as derived for Pod controllers: %w", err)
		}
		n.Fail("%w", err)
	}
	conditions, mutations := p.conditions, p.mutations
	if derived != nil {
		r.Ref.Rule, r.Constraints = "autogen-"+derived.name, derived.constraints(p.Constraints)
		conditions, mutations = derived.sources(conditions), derived.sources(mutations)
	}
	r.Scope = in.NewScope(failed)
	r.Scope.Variables(p.variables)
	r.Conditions, r.Mutations = r.Scope.Conditions(conditions), r.Scope.Mutations(mutations)
	if derived == nil {
		r.Scope.Lint()
	}
	r.targetConditions = r.Scope.Conditions(p.targetConditions)
	if target := r.Scope.Values([]cel.Source{p.targetExpression},
		celgo.MapType(celgo.StringType, celgo.AnyType), celgo.MapType(celgo.StringType, celgo.DynType),
		celgo.DynType); len(target) > 0 {
		r.target = target[0]
	}
	r.annotations = r.Scope.Values(p.annotations, celgo.StringType)
	for _, x := range c.exceptions {
		if slices.Contains(x.policies, policyRef{p.Kind, p.Name}) {
			r.except(x, in.NewScope(failed))
		}
	}
	r.library, r.impure = needsSession(r.Scope), Impure(r.Scope)
	return r
}

// refuse reports why Kyverno 1.19 rejects the policy (pkg/cel/policies/mpol, Validate and Compile).
func (r *rule) refuse() {
	if r.policy.native {
		for _, x := range r.Conditions {
			if x.Uses("variables") {
				x.Refuse(engineName, "variables cannot be referenced in matchConditions when autogen.mutatingAdmissionPolicy is enabled, "+
					"since a MutatingAdmissionPolicy evaluates conditions first: write the expression of the variable")
			}
		}
	}
	if r.policy.Namespace == "" {
		return
	}
	if r.Scope.Uses("globalContext") {
		r.policy.Refuse(engineName, "globalContext.* is not allowed in namespaced policies")
	}
	if r.Scope.Uses("http") {
		r.policy.Lint("http.* is off by default in namespaced policies: Kyverno refuses this policy unless it runs with --allowHTTPInNamespacedPolicies")
	}
}

// except compiles an exception for the policy; it does not see the policy's variables. As in Kyverno, an
// invalid exception disables the policy.
func (r *rule) except(x *exceptionSpec, s *cel.Scope) {
	if len(x.Report.Errs) == 0 {
		r.exceptions = append(r.exceptions,
			&exception{exceptionSpec: x, scope: s, conditions: s.Conditions(x.Conditions)})
		r.Scope.Join(s)
	}
	if len(x.Report.Errs) > 0 {
		r.policy.Fail("PolicyException %s, which names it, is broken: Kyverno takes such a policy out of service", x.Name)
	}
}

func lintVersion(n policydecode.Node) {
	switch version := strings.TrimPrefix(n.Text(), group+"/"); version {
	case "v1", "v1beta1":
	case "v1alpha1":
		n.Lint("v1alpha1 is deprecated; v1 has the same fields")
	default:
		n.Lint("version %s is not known here, and read as v1; the versions are v1, v1beta1 and v1alpha1", version)
	}
}

// lint warns of probable mistakes, and of differences in Kyverno.
func (p *policy) lint() {
	switch constraints := p.fieldNode("matchConstraints"); {
	case len(p.Constraints.Rules) == 0:
		constraints.Empty("matchConstraints with at least one resource rule are required: without one it matches everything; Kyverno refuses this policy")
	case p.Constraints.OnlySubresources():
		if objects, _ := engine.TellObjects(p.Constraints.Selections("")); p.targets != nil && len(objects) > 0 {
			break
		}
		constraints.Lint("only matches requests for subresources, so it never matches an object")
	}
	for _, list := range p.empty {
		p.lintEmpty(list)
	}
	if p.existing {
		p.lintExisting()
	} else {
		p.lintUnused()
	}
	isJSONPatch := func(m cel.Source) bool { return m.JSONPatch }
	if len(p.derivations()) > 0 && slices.ContainsFunc(p.mutations, isJSONPatch) {
		p.fieldNode("mutations").Lint("Kyverno also applies this policy to Pod controllers, but does not rewrite the paths of JSON patches, so they miss the Pod template; " +
			"autogen.podControllers.controllers: [] keeps it to Pods")
	}
}

// lintEmpty warns of an empty list in a resource rule. Kyverno does not read the operations of targets, nor
// any operations when it changes existing objects.
func (p *policy) lintEmpty(list policydecode.Node) {
	operations := strings.HasSuffix(list.Path, ".operations")
	switch targets := strings.HasPrefix(list.Path, "spec.targetMatchConstraints."); {
	case targets && operations:
	case targets:
		list.Lint("is empty, so the rule names no target")
	case operations && p.existing:
		list.Lint("is empty, so no request triggers the policy; Kyverno changes existing objects all the same")
	default:
		list.Lint(`is empty, so the rule matches nothing; "*" matches everything`)
	}
}

func (p *policy) lintExisting() {
	if p.targets == nil && len(p.conditions) > 0 {
		p.fieldNode("matchConditions").Lint("Kyverno 1.19 does not look at matchConditions when it mutates existing objects (kyverno/kyverno#17411): it changes every object that " +
			"matchConstraints select. This program honours them, as Kyverno did up to 1.18; targetMatchConditions mean the same to both")
	}
	if p.targets != nil && slices.ContainsFunc(p.targets.Selections(""), isWildcard) {
		p.fieldNode("targetMatchConstraints").Lint("Kyverno finds no target through \"*\", and neither does this program: name groups, versions and resources")
	}
}

// lintUnused warns of fields that only matter to policies that mutate existing objects.
func (p *policy) lintUnused() {
	if p.targets != nil {
		p.fieldNode("targetMatchConstraints").Lint("evaluation.mutateExisting is not enabled, and a policy with targets changes nothing on admission, so this one has no effect")
	}
	if len(p.targetConditions) > 0 {
		p.fieldNode("targetMatchConditions").Lint("has no effect: evaluation.mutateExisting is not enabled")
	}
}
