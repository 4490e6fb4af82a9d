package match

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Constraints select requests. Without Rules they select every request that nothing
// else keeps out.
type Constraints struct {
	Rules, Excluded     []Rule
	Namespaces, Objects *selector.Labels // nil selects everything
	// Equivalent selects requests for other versions of a resource too, as
	// matchPolicy Equivalent does.
	Equivalent bool
}

// Rule names resources and operations; "*" stands for all.
type Rule struct {
	Groups, Versions []string
	Resources        []Resource
	Operations       []string
	Scope            string   // Namespaced or Cluster; anything else is both
	Names            []string // of objects; none for all
}

// Resource is a resource such as "pods", or a subresource such as "pods/status". Both
// parts may be "*".
type Resource struct{ Name, Subresource string }

// String is the resource as rules write it.
func (r Resource) String() string { return strings.TrimSuffix(r.Name+"/"+r.Subresource, "/") }

// The scopes of a rule that do not stand for both.
const (
	namespacedScope = "Namespaced"
	clusterScope    = "Cluster"
)

// Decode reads the fields that matchConstraints and matchResources share; matchPolicy,
// and the call of Done, are left to the caller. What is wrong goes to the report. A list
// that a rule lacks, without which it selects nothing, goes to missing.
func Decode(f *policydecode.Fields, missing func(policydecode.Node)) *Constraints {
	return &Constraints{
		Namespaces: decodeLabels(f.At("namespaceSelector")), Objects: decodeLabels(f.At("objectSelector")),
		Rules: decodeRules(f.At("resourceRules"), missing), Excluded: decodeRules(f.At("excludeResourceRules"), missing),
	}
}

func decodeLabels(n policydecode.Node) *selector.Labels {
	s := n.LabelSelector()
	if s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return nil
	}
	l, err := selector.NewLabels(s)
	if err != nil {
		n.Fail("%w", err)
		return nil
	}
	return l
}

func decodeRules(n policydecode.Node, missing func(policydecode.Node)) []Rule {
	var out []Rule
	for _, item := range n.List() {
		out = append(out, decodeRule(item.Fields(), missing))
	}
	return out
}

func decodeRule(f *policydecode.Fields, missing func(policydecode.Node)) Rule {
	r := Rule{
		Groups: f.At("apiGroups").Texts(), Versions: f.At("apiVersions").Texts(),
		Operations: f.At("operations").Texts(), Names: f.At("resourceNames").Texts(), Scope: f.At("scope").Text(),
	}
	for _, item := range f.At("resources").List() {
		name, subresource, _ := strings.Cut(item.Text(), "/")
		item.LintKind(engine.KindName{Groups: r.Groups, Versions: r.Versions, Resource: name, Subresource: subresource})
		r.Resources = append(r.Resources, Resource{name, subresource})
	}
	for _, key := range []string{"apiGroups", "apiVersions", "operations", "resources"} {
		if list, isList := f.At(key).Value.([]any); f.At(key).Value == nil || (isList && len(list) == 0) {
			missing(f.At(key))
		}
	}
	for i, operation := range r.Operations {
		if !slices.Contains([]string{"CREATE", "UPDATE", "DELETE", "CONNECT", "*"}, operation) {
			f.At("operations").List()[i].Fail("must be CREATE, UPDATE, DELETE, CONNECT or *, not %q", operation)
		}
	}
	if !slices.Contains([]string{"", "*", clusterScope, namespacedScope}, r.Scope) {
		f.At("scope").Fail("must be Cluster, Namespaced or *, not %q", r.Scope)
	}
	f.Done()
	return r
}

// OnlySubresources reports whether rules name resources, and none of them objects themselves.
func (c *Constraints) OnlySubresources() bool {
	named := false
	for i := range c.Rules {
		for _, x := range c.Rules[i].Resources {
			if x.Subresource == "" || x.Subresource == "*" {
				return false
			}
			named = true
		}
	}
	return named
}

// Selections returns the objects that the constraints may select in a namespace, or in
// all where it is empty. A rule that names versions selects objects in these or, where
// equivalent versions count, reads them in the first.
func (c *Constraints) Selections(namespace string) []engine.Selection {
	rules := c.Rules
	if len(rules) == 0 {
		rules = []Rule{{Groups: []string{"*"}, Versions: []string{"*"}, Resources: []Resource{{Name: "*"}}}}
	}
	var out []engine.Selection
	for i := range rules {
		names := rules[i].Names
		if len(names) == 0 {
			names = []string{""}
		}
		for _, s := range c.selectTypes(&rules[i]) {
			s.Namespace = namespace
			if c.Objects != nil {
				s.Labels = c.Objects.Exact()
			}
			for _, s.Name = range names {
				out = append(out, s)
			}
		}
	}
	return out
}

func (c *Constraints) selectTypes(r *Rule) []engine.Selection {
	var out []engine.Selection
	for _, group := range r.Groups {
		for _, x := range r.Resources {
			s := engine.Selection{Group: group, Kind: "*", Resource: x.Name, Subresource: x.Subresource}
			switch {
			case slices.Contains(r.Versions, "*"):
				out = append(out, s)
			case c.Equivalent && len(r.Versions) > 0:
				s.ReadAs = r.Versions[0]
				out = append(out, s)
			default:
				for _, s.Version = range r.Versions {
					out = append(out, s)
				}
			}
		}
	}
	return out
}

// Operations returns the operations that the rules name, each once; none where a rule
// leaves them open.
func (c *Constraints) Operations() []engine.Operation {
	var out []engine.Operation
	for i := range c.Rules {
		if len(c.Rules[i].Operations) == 0 || slices.Contains(c.Rules[i].Operations, "*") {
			return nil
		}
		for _, o := range c.Rules[i].Operations {
			if !slices.Contains(out, engine.Operation(o)) {
				out = append(out, engine.Operation(o))
			}
		}
	}
	return out
}

// Where describes what the constraints ask for beyond their Operations and Selections.
func (c *Constraints) Where() []string {
	var out []string
	for i := range c.Rules {
		if r := &c.Rules[i]; r.scoped() {
			out = append(out, "scope of "+r.resources()+": "+r.Scope)
		}
	}
	if c.Namespaces != nil {
		out = append(out, "namespaceSelector: "+c.Namespaces.String())
	}
	for i := range c.Excluded {
		out = append(out, "unless "+c.Excluded[i].String())
	}
	return out
}

// Describe describes all that the constraints ask for, but operations.
func (c *Constraints) Describe() []string {
	var out []string
	if len(c.Rules) > 0 {
		out = append(out, "resourceRules: "+ruleTexts(c.Rules))
	}
	if c.Objects != nil {
		out = append(out, "objectSelector: "+c.Objects.String())
	}
	return append(out, c.Where()...)
}

// String is like "deployments, deployments/scale of apps/v1 named a", without the
// operations.
func (r *Rule) String() string {
	var versions []string
	for _, group := range r.Groups {
		for _, version := range r.Versions {
			versions = append(versions, schema.GroupVersion{Group: group, Version: version}.String())
		}
	}
	text := r.resources() + " of " + strings.Join(versions, ", ")
	if len(r.Names) > 0 {
		text += " named " + strings.Join(r.Names, ", ")
	}
	if r.scoped() {
		text += " in scope " + r.Scope
	}
	return text
}

func (r *Rule) scoped() bool { return r.Scope == namespacedScope || r.Scope == clusterScope }

func (r *Rule) resources() string {
	texts := make([]string, len(r.Resources))
	for i, x := range r.Resources {
		texts[i] = x.String()
	}
	return strings.Join(texts, ", ")
}

func ruleTexts(rules []Rule) string {
	texts := make([]string, len(rules))
	for i := range rules {
		texts[i] = rules[i].String()
	}
	return strings.Join(texts, ", or ")
}
