package mutatingpolicy

import (
	"cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

const group = "policies.kyverno.io"

const engineName = "Kyverno"

// The kinds of the language.
const (
	kindPolicy           = "MutatingPolicy"
	kindNamespacedPolicy = "NamespacedMutatingPolicy"
	kindException        = "PolicyException"
)

// policy is a MutatingPolicy or a NamespacedMutatingPolicy. Its rules share the decoded fields.
type policy struct {
	policydecode.Node // of the document
	cel.Policy        // as written
	Kind, Name        string
	Namespace         string // of a NamespacedMutatingPolicy, which stays in it; else empty

	conditions, variables, mutations []cel.Source
	annotations                      []cel.Source // auditAnnotations, by key

	// targets are the targetMatchConstraints; nil if every object is its own target.
	targets          *cel.Constraints
	targetExpression cel.Source // without a string if there is none
	targetConditions []cel.Source

	existing      bool // evaluation.mutateExisting
	replaceAtomic bool // evaluation.useServerSideApply
	native        bool // autogen.mutatingAdmissionPolicy
	// generated reports that the cluster's Kyverno has made a MutatingAdmissionPolicy of it, and does nothing
	// itself.
	generated bool

	controllers []string            // to derive policies for; nil for all
	empty       []policydecode.Node // empty or missing lists in resource rules
}

// decodePolicy reads a policy. Errors go to the report, and so do the warnings of a valid policy.
func decodePolicy(r *policydecode.Report, d engine.Document) *policy {
	p := &policy{Kind: d.Key.Kind, Name: d.Key.Name, Node: policydecode.Node{Report: r}}
	p.Ref = engine.RuleRef{
		Dialect: Name, Policy: p.Name, Origin: d.Origin, Severity: engine.SeverityOf(d.Object()),
	}
	if p.Kind == kindNamespacedPolicy {
		p.Namespace = cmp.Or(d.Key.Namespace, "default")
		r.Namespace, p.Ref.Policy = p.Namespace, p.Namespace+"/"+p.Name
	}
	root := policydecode.Node{Report: r, Value: d.Object().Object}.Fields()
	lintVersion(root.At("apiVersion"))
	f := root.At("spec").Fields()
	constraints := f.At("matchConstraints").Fields()
	p.Constraints = p.decodeConstraints(constraints)
	constraints.Done()
	p.conditions = cel.DecodeNamed(f.At("matchConditions"), nil)
	p.variables = cel.DecodeNamed(f.At("variables"), func(_ policydecode.Node, v cel.Source) { v.Fail("another variable is also called %s", v.Name) })
	p.mutations = cel.DecodePatches(f.At("mutations"), nil)
	p.decodeAnnotations(f.At("auditAnnotations"))
	p.decodeTargets(f.At("targetMatchConstraints"))
	p.targetConditions = cel.DecodeNamed(f.At("targetMatchConditions"), nil)
	p.decodeEvaluation(f.At("evaluation").Fields())
	p.decodeAutogen(f.At("autogen").Fields())
	p.FailuresIgnored = f.At("failurePolicy").OneOf("Fail", "Ignore") == "Ignore"
	p.Reinvoked = f.At("reinvocationPolicy").OneOf("Never", "IfNeeded") == "IfNeeded"
	f.Elsewhere("below matchConstraints", "resourceRules", "excludeResourceRules",
		"namespaceSelector", "objectSelector")
	f.Accept("webhookConfiguration")
	f.Done()
	root.DoneObject()
	p.generated = p.native && d.Origin == "cluster" && root.At("status").Fields().At("generated").Value == true
	if len(r.Errs) == 0 {
		p.lint()
	}
	return p
}

func (p *policy) fieldNode(field string) policydecode.Node {
	return policydecode.Node{Report: p.Report, Path: "spec." + field}
}

// derivations returns Kyverno's derivations for Pod controllers. A policy with its own targets has none: each
// controller that it also matches would change the same targets again.
func (p *policy) derivations() []derivation {
	if !onlyPods(p.Constraints) || p.targets != nil {
		return nil
	}
	return derivationsFor(p.controllers)
}

// decodeConstraints reads matchConstraints. The caller reads fields that only targetMatchConstraints have,
// and calls Done. Kyverno's matcher ignores matchPolicy, and a rule that lacks a list matches nothing.
func (p *policy) decodeConstraints(f *policydecode.Fields) *cel.Constraints {
	c := cel.DecodeConstraints(f, func(list policydecode.Node) { p.empty = append(p.empty, list) })
	f.At("matchPolicy").Text()
	return c
}

// selectionsOf returns the constraints' selections in a namespace. A rule does not match other versions than
// its own, but objects are selected in any, and read in its version.
func selectionsOf(c *cel.Constraints, namespace string) []engine.Selection {
	out := c.Selections(namespace)
	for i := range out {
		out[i].ReadAs, out[i].Version = out[i].Version, ""
	}
	return out
}

func (p *policy) decodeAnnotations(n policydecode.Node) {
	for _, item := range n.List() {
		f := item.Fields()
		x := cel.Source{Node: f.At("valueExpression"), Name: f.At("key").Text()}
		if x.Text = x.Node.Text(); x.Name == "" || x.Text == "" {
			f.Fail("needs a key and a valueExpression")
		}
		p.annotations = append(p.annotations, x)
		f.Done()
	}
}

func (p *policy) decodeTargets(n policydecode.Node) {
	if n.Value == nil {
		return
	}
	f := n.Fields()
	x := cel.Source{Node: f.At("expression")}
	x.Text = x.Node.Text()
	if x.Text == "" && len(f.At("resourceRules").List()) == 0 {
		p.decodeConstraints(f)
		f.Done()
		n.Lint("has neither resourceRules nor an expression, so it has no effect: each object that the policy matches is its own target")
		return
	}
	p.targetExpression, p.targets = x, p.decodeConstraints(f)
	f.Done()
}

func (p *policy) decodeEvaluation(f *policydecode.Fields) {
	admission := enabled(f.At("admission"), true)
	enabled(f.At("background"), true) // only Kyverno's reports use it
	p.existing = enabled(f.At("mutateExisting"), false)
	if !admission && !p.existing {
		f.Fail("admission and mutateExisting are both disabled, so nothing would ever be mutated; Kyverno refuses this policy")
	} else if !admission {
		f.At("admission").Lint("is disabled, so no request sets the policy off: Kyverno applies it when it is created or changed, and in its scans")
	}
	if mode := f.At("mode").Text(); mode != "" && mode != "Kubernetes" {
		f.At("mode").Fail("%s is for documents that are not Kubernetes objects; there are none in a cluster", mode)
	}
	p.replaceAtomic = f.At("useServerSideApply").Bool()
	f.Accept("skipBackgroundRequests")
	f.Done()
}

func enabled(n policydecode.Node, fallback bool) bool {
	f := n.Fields()
	defer f.Done()
	if f.Has("enabled") {
		return f.At("enabled").Bool()
	}
	return fallback
}

func (p *policy) decodeAutogen(f *policydecode.Fields) {
	pods := f.At("podControllers").Fields()
	if controllers := pods.At("controllers"); controllers.Value != nil {
		p.controllers = append([]string{}, controllers.Texts()...)
		for _, name := range p.controllers {
			if len(derivationsFor([]string{name})) == 0 {
				controllers.Lint("Kyverno derives no policy for %q", name)
			}
		}
	}
	pods.Done()
	p.native = enabled(f.At("mutatingAdmissionPolicy"), false)
	f.Done()
}
