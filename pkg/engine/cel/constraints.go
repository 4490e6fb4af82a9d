package cel

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Constraints select requests. Without Rules they select all requests that nothing else excludes.
type Constraints struct {
	Rules, Excluded     []Rule
	Namespaces, Objects *selector.Labels // nil selects everything
	// Equivalent also selects requests for other versions of a resource, like matchPolicy Equivalent.
	Equivalent bool
}

// Rule names resources and operations; "*" stands for all.
type Rule = admissionregistrationv1.NamedRuleWithOperations

// DecodeConstraints reads the fields that matchConstraints and matchResources share; the caller reads
// matchPolicy and calls Done. Errors go to the report. A list without which a rule selects nothing goes to
// missing.
func DecodeConstraints(f *policydecode.Fields, missing func(policydecode.Node)) *Constraints {
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
		n.Fail("%w%s", err, engine.PlaceholderHint(err.Error()))
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
	r := Rule{ResourceNames: f.At("resourceNames").Texts()}
	r.APIGroups, r.APIVersions = f.At("apiGroups").Texts(), f.At("apiVersions").Texts()
	for _, item := range f.At("resources").List() {
		r.Resources = append(r.Resources, item.Text())
		name, subresource, _ := strings.Cut(r.Resources[len(r.Resources)-1], "/")
		item.LintKind(engine.KindName{
			Groups: r.APIGroups, Versions: r.APIVersions, Resource: name, Subresource: subresource,
		})
	}
	for _, key := range []string{"apiGroups", "apiVersions", "operations", "resources"} {
		if list, isList := f.At(key).Value.([]any); f.At(key).Value == nil || (isList && len(list) == 0) {
			missing(f.At(key))
		}
	}
	for _, item := range f.At("operations").List() {
		operation := item.Text()
		r.Operations = append(r.Operations, admissionregistrationv1.OperationType(operation))
		if !slices.Contains([]string{"CREATE", "UPDATE", "DELETE", "CONNECT", "*"}, operation) {
			item.Fail("must be CREATE, UPDATE, DELETE, CONNECT or *, not %q", operation)
		}
	}
	if scope := admissionregistrationv1.ScopeType(f.At("scope").Text()); scope != "" {
		r.Scope = &scope
		if !slices.Contains([]string{"*", "Cluster", "Namespaced"}, string(scope)) {
			f.At("scope").Fail("must be Cluster, Namespaced or *, not %q", scope)
		}
	}
	f.Done()
	return r
}

// OnlySubresources reports whether all resources in the rules are subresources, and there are any.
func (c *Constraints) OnlySubresources() bool {
	named := false
	for i := range c.Rules {
		for _, x := range c.Rules[i].Resources {
			if _, subresource, _ := strings.Cut(x, "/"); subresource == "" || subresource == "*" {
				return false
			}
			named = true
		}
	}
	return named
}

// Selections returns the objects that the constraints may select in a namespace, or in all if it is empty. A
// rule with versions selects objects in these or, with Equivalent, reads them in the first.
func (c *Constraints) Selections(namespace string) []engine.Selection {
	if len(c.Rules) == 0 {
		all := *c
		all.Rules = []Rule{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Rule: admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: anyVersion, Resources: []string{"*"}},
		}}}
		return all.Selections(namespace)
	}
	var out []engine.Selection
	for i := range c.Rules {
		names := c.Rules[i].ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, s := range c.selectTypes(&c.Rules[i]) {
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
	for _, group := range r.APIGroups {
		for _, x := range r.Resources {
			s := engine.Selection{Group: group, Kind: "*"}
			s.Resource, s.Subresource, _ = strings.Cut(x, "/")
			switch {
			case slices.Contains(r.APIVersions, "*"):
				out = append(out, s)
			case c.Equivalent && len(r.APIVersions) > 0:
				s.ReadAs = r.APIVersions[0]
				out = append(out, s)
			default:
				for _, s.Version = range r.APIVersions {
					out = append(out, s)
				}
			}
		}
	}
	return out
}

// Operations returns the distinct operations of the rules; none if a rule leaves them open.
func (c *Constraints) Operations() []engine.Operation {
	var out []engine.Operation
	for i := range c.Rules {
		if len(c.Rules[i].Operations) == 0 ||
			slices.Contains(c.Rules[i].Operations, admissionregistrationv1.OperationAll) {
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

// AsksOperation reports whether a rule selects creations but not updates, or vice versa.
func (c *Constraints) AsksOperation() bool {
	return slices.ContainsFunc(slices.Concat(c.Rules, c.Excluded), func(r Rule) bool {
		has := func(o admissionregistrationv1.OperationType) bool { return slices.Contains(r.Operations, o) }
		return !has(admissionregistrationv1.OperationAll) &&
			has(admissionregistrationv1.Create) != has(admissionregistrationv1.Update)
	})
}

// Where describes the constraints beyond their Operations and Selections.
func (c *Constraints) Where() []string {
	var out []string
	for i := range c.Rules {
		if r := &c.Rules[i]; scopeOf(r) != "" {
			out = append(out, "scope of "+strings.Join(r.Resources, ", ")+": "+scopeOf(r))
		}
	}
	if c.Namespaces != nil {
		out = append(out, "namespaceSelector: "+c.Namespaces.String())
	}
	for i := range c.Excluded {
		out = append(out, "unless "+ruleText(&c.Excluded[i]))
	}
	return out
}

// Describe describes the constraints without operations.
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

// ruleText is like "deployments, deployments/scale of apps/v1 named a", without operations.
func ruleText(r *Rule) string {
	var versions []string
	for _, group := range r.APIGroups {
		for _, version := range r.APIVersions {
			versions = append(versions, schema.GroupVersion{Group: group, Version: version}.String())
		}
	}
	text := strings.Join(r.Resources, ", ") + " of " + strings.Join(versions, ", ")
	if len(r.ResourceNames) > 0 {
		text += " named " + strings.Join(r.ResourceNames, ", ")
	}
	if scope := scopeOf(r); scope != "" {
		text += " in scope " + scope
	}
	return text
}

// scopeOf returns Namespaced or Cluster; empty for both.
func scopeOf(r *Rule) string {
	if r.Scope == nil || *r.Scope == admissionregistrationv1.AllScopes {
		return ""
	}
	return string(*r.Scope)
}

func ruleTexts(rules []Rule) string {
	texts := make([]string, len(rules))
	for i := range rules {
		texts[i] = ruleText(&rules[i])
	}
	return strings.Join(texts, ", or ")
}
