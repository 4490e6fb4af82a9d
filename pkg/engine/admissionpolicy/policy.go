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

	scope       *cel.Scope
	conditions  []cel.Condition
	mutations   []cel.Change
	traffic     cel.Traffic
	asksParams  bool // an expression uses params
	asksForNS   bool // an expression uses namespaceObject
	asksUser    bool // an expression asks who makes the request
	needsSchema bool // a mutation is an apply configuration
}

// root is the place of the document as a whole, while the policy is compiled.
func (p *policy) root() policydecode.Node { return policydecode.Node{Report: p.report} }

// maxConditions is how many match conditions an API server takes.
const maxConditions = 64

// expressions are those that a policy has.
type expressions struct {
	variables, conditions []cel.Named
	mutations             []cel.Patch
}

// decodePolicy reads a policy. What is wrong with it goes to the report.
func decodePolicy(r *policydecode.Report, d engine.Document) (*policy, expressions) {
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
	twice := func(name policydecode.Node, x cel.Named) { name.Fail("there is another one called %s", x.Name) }
	x := expressions{variables: cel.DecodeNamed(spec.At("variables"), twice), conditions: cel.DecodeNamed(spec.At("matchConditions"), twice)}
	if len(x.conditions) > maxConditions {
		spec.At("matchConditions").Lint("an API server takes no more than %d", maxConditions)
	}
	x.mutations = cel.DecodePatches(spec.At("mutations"), func(field policydecode.Node, patchType string) {
		field.Lint("an API server refuses it where patchType is %s; it has no effect", patchType)
	})
	spec.Elsewhere("below matchConstraints", "resourceRules", "excludeResourceRules", "namespaceSelector", "objectSelector")
	spec.Done()
	root.DoneObject()
	return p, x
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
