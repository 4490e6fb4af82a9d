package kyverno

import (
	"cmp"
	"errors"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

type policy struct {
	name      string
	namespace string // of a Policy, which sees and changes only objects in it
	applyOne  bool   // stop after the first rule that changes the object
	// mutateOnUpdate is the policy's deprecated mutateExistingOnPolicyUpdate.
	mutateOnUpdate bool
	rules          []*rule
	written        []string // names of all rules as written, including other types
	inputs         *inputs  // further documents that the rules read
}

// decodePolicy reads a policy and derives the rules for Pod controllers. Errors go to the report. given are
// the names to which the user gives values.
func decodePolicy(r *policydecode.Report, d engine.Document, given []string) *policy {
	root := policydecode.Node{Report: r, Value: d.Object().Object}.Fields()
	if v := d.Key.GroupVersionKind().Version; v != "v1" && v != "v2beta1" {
		root.At("apiVersion").Fail("%s is no version of %s: use v1 or v2beta1", d.Object().GetAPIVersion(), d.Key.Kind)
	}
	spec := root.At("spec").Fields()
	p := &policy{name: d.Key.Name, applyOne: spec.At("applyRules").OneOf("All", "One") == "One"}
	if d.Key.Kind == "Policy" {
		p.namespace = cmp.Or(d.Key.Namespace, "default")
		r.Namespace = p.namespace
	}
	p.mutateOnUpdate = spec.At("mutateExistingOnPolicyUpdate").Bool()
	gap := decodeGate(spec)
	raw := spec.At("rules").List()
	if len(raw) == 0 {
		spec.At("rules").Fail("has no rules")
	}
	background := spec.Values["background"] != false && spec.Values["background"] != "false"
	c := ruleCompiler{
		given: given, background: background, policy: p,
		ref: engine.RuleRef{
			Dialect: Name, Policy: nameOf(d), Origin: d.Origin,
			Severity: engine.SeverityOf(d.Object()),
		}, gap: gap,
	}
	for _, n := range raw {
		c.targets = c.targets || len(sequence(mapping(mapping(n.Value)["mutate"])["targets"])) > 0
	}
	checks := &checked{
		namespaced: p.namespace != "", checkKind: r.CheckKind, background: background,
		spec: spec.Values, variables: variables.Mentions(root.Values, "{{"),
	}
	known, compiled := map[string]bool{}, map[int]*rule{}
	for i, n := range raw {
		n.Rule = ruleName(n.Value)
		if known[n.Rule] {
			n.Refuse(kyvernoName, "another rule of this policy is called %s too", n.Rule)
		}
		if known[n.Rule] = true; n.Rule != "" {
			p.written = append(p.written, n.Rule)
		}
		if one := c.add(n); one != nil {
			compiled[i] = one
		}
		checks.checkRule(n)
	}
	checks.check(root.Node, policyChecks)
	if len(compiled) == 0 && len(r.Errs) == 0 {
		spec.At("rules").Finding(engine.NothingToDo, "no rule mutates, so this policy does nothing here")
	}
	for _, w := range WrittenRules(d) {
		one := compiled[w.Index]
		if one != nil && w.Derived {
			one = c.derive(raw[w.Index], w.Fields)
		}
		if one != nil {
			p.rules = append(p.rules, one)
		}
	}
	spec.Done()
	root.DoneObject()
	return p
}

// decodeGate reads the fields that decide about the whole policy. Fields of the webhook or of other rule
// types are accepted and ignored.
func decodeGate(spec *policydecode.Fields) error {
	spec.Accept("admission", "background", "emitWarning", "failurePolicy", "generateExisting",
		"schemaValidation", "generateExistingOnPolicyUpdate",
		"useServerSideApply", "validationFailureAction", "validationFailureActionOverrides",
		"webhookTimeoutSeconds")
	webhook := spec.At("webhookConfiguration").Fields()
	conditions := webhook.At("matchConditions")
	webhook.Accept("failurePolicy", "timeoutSeconds")
	webhook.Done()
	if len(conditions.List()) == 0 {
		return nil
	}
	return &engine.UnsupportedError{Field: conditions.Path, Err: errors.New("CEL conditions of the webhook are not evaluated")}
}
