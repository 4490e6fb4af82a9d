package admissionpolicy

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// policy is a MutatingAdmissionPolicy.
type policy struct {
	ref         engine.RuleRef
	report      *policydecode.Report // nil once it is compiled
	broken      bool                 // it does not compile
	constraints *match.Constraints
	params      *schema.GroupVersionKind // paramKind; nil for none
	// ignores is failurePolicy Ignore, and reinvoked reinvocationPolicy IfNeeded.
	ignores, reinvoked bool

	variables, conditions []named
	mutations             []mutation

	scope       *cel.Scope
	traffic     cel.Traffic
	asksParams  bool // an expression uses params
	asksForNS   bool // an expression uses namespaceObject
	asksUser    bool // an expression asks who makes the request
	needsSchema bool // a mutation is an apply configuration
}

// root is the place of the document as a whole, while the policy is compiled.
func (p *policy) root() policydecode.Node { return policydecode.Node{Report: p.report} }

// named is a variable or a match condition.
type named struct {
	name       string
	expression policydecode.Node
	compiled   *cel.Expression // of a condition
}

// mutation is one of a policy's mutations.
type mutation struct {
	patchType  string
	expression policydecode.Node
	compiled   *cel.Mutation
}

const (
	applyConfiguration = "ApplyConfiguration"
	jsonPatch          = "JSONPatch"
)

// maxConditions is how many match conditions an API server takes.
const maxConditions = 64

// decodePolicy reads a policy. What is wrong with it goes to the report.
func decodePolicy(r *policydecode.Report, d engine.Document) *policy {
	p := &policy{report: r, ref: engine.RuleRef{Dialect: Name, Policy: d.Key.Name, Origin: d.Origin, Severity: engine.SeverityOf(d.Object())}}
	root := policydecode.Node{Report: r, Value: d.Object().Object}.Fields()
	checkVersion(root.At("apiVersion"), d)
	if d.Key.Name == "" {
		root.At("metadata").Fields().At("name").Fail("is missing")
	}
	spec := root.At("spec").Fields()
	p.params = decodeParamKind(spec.At("paramKind"))
	p.constraints = decodeConstraints(spec.At("matchConstraints"))
	if len(p.constraints.Rules) == 0 {
		spec.At("matchConstraints").Fail("has no resourceRules: nothing says what the policy is for")
	}
	p.ignores = spec.At("failurePolicy").OneOf("Fail", "Ignore") == "Ignore"
	p.reinvoked = spec.At("reinvocationPolicy").OneOf("Never", "IfNeeded") == "IfNeeded"
	if !spec.Has("reinvocationPolicy") {
		spec.At("reinvocationPolicy").Lint("an API server refuses a policy without it; Never is assumed")
	}
	p.variables = decodeNamed(spec.At("variables"))
	p.conditions = decodeNamed(spec.At("matchConditions"))
	if len(p.conditions) > maxConditions {
		spec.At("matchConditions").Lint("an API server takes no more than %d", maxConditions)
	}
	for _, item := range spec.At("mutations").List() {
		p.mutations = append(p.mutations, decodeMutation(item))
	}
	if len(p.mutations) == 0 {
		spec.At("mutations").Fail("has no mutations")
	}
	spec.Elsewhere("below matchConstraints", "resourceRules", "excludeResourceRules", "namespaceSelector", "objectSelector")
	spec.Done()
	root.DoneObject()
	return p
}

// decodeConstraints reads matchConstraints or matchResources, with the defaults that an
// API server fills in.
func decodeConstraints(n policydecode.Node) *match.Constraints {
	f := n.Fields()
	c := match.Decode(f, func(list policydecode.Node) {
		list.Lint("an API server refuses a rule without it, and it selects nothing")
	})
	c.Equivalent = f.At("matchPolicy").OneOf("Equivalent", "Exact") == "Equivalent"
	f.Done()
	return c
}

// selectionsOf returns the objects that constraints may select, and the requests to subresources.
func selectionsOf(c *match.Constraints) (objects, requests []engine.Selection) {
	return engine.SplitRequests(c.Selections(""))
}

func checkVersion(n policydecode.Node, d engine.Document) {
	if !slices.Contains([]string{"v1", "v1beta1", "v1alpha1"}, d.Key.GroupVersionKind().Version) {
		n.Fail("%s is no version of %s: use v1, v1beta1 or v1alpha1", d.Object().GetAPIVersion(), d.Key.Kind)
	}
}

func decodeParamKind(n policydecode.Node) *schema.GroupVersionKind {
	if n.Value == nil {
		return nil
	}
	f := n.Fields()
	gv, err := schema.ParseGroupVersion(f.At("apiVersion").Text())
	if err != nil || gv.Version == "" {
		f.At("apiVersion").Fail("must be a group and a version, such as v1 or apps/v1")
	}
	kind := f.At("kind").Required()
	f.At("kind").LintKind(engine.KindName{Groups: []string{gv.Group}, Versions: []string{gv.Version}, Kind: kind})
	f.Done()
	gvk := gv.WithKind(kind)
	return &gvk
}

func decodeNamed(n policydecode.Node) []named {
	var out []named
	names := map[string]bool{}
	for _, item := range n.List() {
		f := item.Fields()
		x := named{name: f.At("name").Required(), expression: f.At("expression")}
		f.Done()
		if x.name != "" && names[x.name] {
			f.At("name").Fail("there is another one called %s", x.name)
		}
		names[x.name] = true
		out = append(out, x)
	}
	return out
}

func decodeMutation(n policydecode.Node) mutation {
	f := n.Fields()
	m := mutation{patchType: f.At("patchType").Text()}
	own, other := f.At("applyConfiguration"), f.At("jsonPatch")
	switch m.patchType {
	case applyConfiguration:
	case jsonPatch:
		own, other = other, own
	default:
		f.At("patchType").Fail("must be %s or %s, not %q", applyConfiguration, jsonPatch, m.patchType)
	}
	if other.Value != nil {
		other.Lint("an API server refuses it where patchType is %s; it has no effect", m.patchType)
	}
	fields := own.Fields()
	m.expression = fields.At("expression")
	fields.Done()
	f.Elsewhere("below applyConfiguration or jsonPatch", "expression")
	f.Done()
	return m
}
