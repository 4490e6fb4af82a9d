package mutatingpolicy

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// group is the API group of the language.
const group = "policies.kyverno.io"

// The kinds of the language.
const (
	kindPolicy           = "MutatingPolicy"
	kindNamespacedPolicy = "NamespacedMutatingPolicy"
	kindException        = "PolicyException"
)

// policySpec is a MutatingPolicy, or a NamespacedMutatingPolicy.
type policySpec struct {
	policydecode.Node
	*settings
	Kind, Name string

	Constraints *match.Constraints
	Conditions  []cel.Named
	Variables   []cel.Named
	Mutations   []cel.Patch
	Annotations []cel.Named // auditAnnotations, by key

	TargetExpression cel.Named // Text is empty where there is none
	TargetConditions []cel.Named

	ServerSide bool // evaluation.useServerSideApply

	controllers []string            // of which policies are derived; nil for all
	empty       []policydecode.Node // lists of resource rules that are empty or left out
	fields      *policydecode.Fields
}

// settings are what rules keep of their policy, beside their own.
type settings struct {
	Namespace string // of a NamespacedMutatingPolicy, which stays in it; else empty

	// Targets are the targetMatchConstraints; nil where every object is its own target.
	Targets     *match.Constraints
	TargetField string // the place of TargetExpression

	Existing        bool // evaluation.mutateExisting
	FailuresIgnored bool // failurePolicy: Ignore
	Reinvoked       bool // reinvocationPolicy: IfNeeded
	// Generated reports that the cluster's Kyverno has made a MutatingAdmissionPolicy
	// of it, and does nothing itself.
	Generated bool
}

// decodePolicy reads a policy. What is wrong with it goes to the report, and so
// do the warnings of a policy with which nothing is.
func decodePolicy(r *policydecode.Report, d engine.Document) *policySpec {
	p := &policySpec{settings: &settings{}, Kind: d.Key.Kind, Name: d.Key.Name, Node: policydecode.Node{Report: r, Value: d.Object().Object}}
	if p.Kind == kindNamespacedPolicy {
		if p.Namespace = d.Key.Namespace; p.Namespace == "" {
			p.Namespace = "default"
		}
		r.Namespace = p.Namespace
	}
	root := p.Fields()
	lintVersion(root.At("apiVersion"))
	f := root.At("spec").Fields()
	p.fields = f
	p.decodeMatch(f)
	p.Mutations = cel.DecodePatches(f.At("mutations"), nil)
	p.decodeAnnotations(f.At("auditAnnotations"))
	p.decodeTargets(f.At("targetMatchConstraints"))
	p.TargetConditions = conditions(f.At("targetMatchConditions"))
	p.decodeEvaluation(f.At("evaluation").Fields())
	p.decodeAutogen(f.At("autogen").Fields())
	p.FailuresIgnored = f.At("failurePolicy").OneOf("Fail", "Ignore") == "Ignore"
	p.Reinvoked = f.At("reinvocationPolicy").OneOf("Never", "IfNeeded") == "IfNeeded"
	f.Elsewhere("below matchConstraints", "resourceRules", "excludeResourceRules", "namespaceSelector", "objectSelector")
	f.Accept("webhookConfiguration")
	f.Done()
	root.DoneObject()
	p.Generated = p.Generated && d.Origin == "cluster" && root.At("status").Fields().At("generated").Value == true
	if len(r.Errs) == 0 {
		p.lint()
	}
	return p
}

// DisplayName is "name", or "namespace/name" for a namespaced policy.
func (p *policySpec) DisplayName() string {
	if p.Namespace == "" {
		return p.Name
	}
	return p.Namespace + "/" + p.Name
}

// At is the place of a field of spec.
func (p *policySpec) At(field string) policydecode.Node { return p.fields.At(field) }

// Derivations are how Kyverno derives policies for Pod controllers from this one.
// One with targets of its own has none: each controller that it also matches would
// change the same targets again.
func (p *policySpec) Derivations() []derivation {
	if !onlyPods(p.Constraints) || p.Targets != nil {
		return nil
	}
	return derivations(p.controllers)
}

// decodeConstraints reads matchConstraints. Fields that only targetMatchConstraints have
// are left to the caller, and so is the call of Done. Kyverno's matcher does not look at
// matchPolicy, and takes a list that a rule lacks for one that names nothing.
func (p *policySpec) decodeConstraints(f *policydecode.Fields) *match.Constraints {
	c := match.Decode(f, func(list policydecode.Node) { p.empty = append(p.empty, list) })
	f.At("matchPolicy").Text()
	return c
}

// selectionsOf returns what constraints select in a namespace. Objects in other versions
// than a rule names are none of its, but are best read in the version that it names.
func selectionsOf(c *match.Constraints, namespace string) []engine.Selection {
	out := c.Selections(namespace)
	for i := range out {
		out[i].ReadAs, out[i].Version = out[i].Version, ""
	}
	return out
}

func (p *policySpec) decodeMatch(f *policydecode.Fields) {
	constraints := f.At("matchConstraints").Fields()
	p.Constraints = p.decodeConstraints(constraints)
	constraints.Done()
	p.Conditions = conditions(f.At("matchConditions"))
	p.Variables = cel.DecodeNamed(f.At("variables"), func(_ policydecode.Node, v cel.Named) { v.Fail("another variable is also called %s", v.Name) })
	for _, v := range p.Variables {
		v.Required()
	}
}

// conditions reads match conditions.
func conditions(n policydecode.Node) []cel.Named {
	out := cel.DecodeNamed(n, nil)
	for _, x := range out {
		x.Required()
	}
	return out
}

func (p *policySpec) decodeAnnotations(n policydecode.Node) {
	for _, item := range n.List() {
		f := item.Fields()
		x := cel.Named{Node: f.At("valueExpression"), Name: f.At("key").Text()}
		if x.Text = x.Node.Text(); x.Name == "" || x.Text == "" {
			f.Fail("needs a key and a valueExpression")
		}
		p.Annotations = append(p.Annotations, x)
		f.Done()
	}
}

func (p *policySpec) decodeTargets(n policydecode.Node) {
	if n.Value == nil {
		return
	}
	f := n.Fields()
	x := cel.Named{Node: f.At("expression")}
	x.Text = x.Node.Text()
	if x.Text == "" && len(f.At("resourceRules").List()) == 0 {
		n.Lint("has neither resourceRules nor an expression, so it has no effect: each object that the policy matches is its own target")
		return
	}
	p.TargetExpression, p.TargetField = x, x.Path
	p.Targets = p.decodeConstraints(f)
	f.Done()
}

func (p *policySpec) decodeEvaluation(f *policydecode.Fields) {
	admission := enabled(f.At("admission"), true)
	enabled(f.At("background"), true) // only Kyverno's reports go by it
	p.Existing = enabled(f.At("mutateExisting"), false)
	if !admission && !p.Existing {
		f.Fail("admission and mutateExisting are both disabled, so nothing would ever be mutated; Kyverno refuses such a policy")
	} else if !admission {
		f.At("admission").Lint("is disabled, so no request sets the policy off: Kyverno applies it when it is created or changed, and in its scans")
	}
	if mode := f.At("mode").Text(); mode != "" && mode != "Kubernetes" {
		f.At("mode").Fail("%s is for documents that are not Kubernetes objects; there are none in a cluster", mode)
	}
	p.ServerSide = f.At("useServerSideApply").Bool()
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

func (p *policySpec) decodeAutogen(f *policydecode.Fields) {
	pods := f.At("podControllers").Fields()
	if controllers := pods.At("controllers"); controllers.Value != nil {
		p.controllers = append([]string{}, controllers.Texts()...)
		for _, name := range p.controllers {
			if !knownController(name) {
				controllers.Lint("Kyverno derives no policy for %q", name)
			}
		}
	}
	pods.Done()
	p.Generated = enabled(f.At("mutatingAdmissionPolicy"), false)
	f.Done()
}
