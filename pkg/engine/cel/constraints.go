package cel

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Constraints select requests. Without Rules they select all requests that nothing else excludes.
type Constraints struct {
	Rules, Excluded     Rules
	Namespaces, Objects *selector.Labels // nil selects everything
	// Equivalent also selects requests for other versions of a resource, like matchPolicy Equivalent.
	Equivalent bool
}

// Rule names resources and operations; "*" stands for all.
type Rule = admissionregistrationv1.NamedRuleWithOperations

const anyScope = admissionregistrationv1.AllScopes

// Rules are alternatives.
type Rules []Rule

// String is like "deployments, deployments/scale of apps/v1 named a, or * of */*", without operations.
func (all Rules) String() string {
	var texts []string
	for i := range all {
		r := &all[i]
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
		if scope := ptr.Deref(r.Scope, anyScope); scope != anyScope {
			text += " in scope " + string(scope)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", or ")
}

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
	l := n.Labels(selector.NewLabels)
	if l == nil || len(l.Keys()) == 0 {
		return nil
	}
	return l
}

func decodeRules(n policydecode.Node, missing func(policydecode.Node)) (out Rules) {
	for _, item := range n.List() {
		f := item.Fields()
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
			operation := item.Known(item.Text(), "CREATE", "UPDATE", "DELETE", "CONNECT", "*")
			r.Operations = append(r.Operations, admissionregistrationv1.OperationType(operation))
		}
		if scope := admissionregistrationv1.ScopeType(f.At("scope").Text()); scope != "" {
			r.Scope = &scope
			f.At("scope").Known(string(scope), "Cluster", "Namespaced", "*")
		}
		f.Done()
		out = append(out, r)
	}
	return out
}

// OnlySubresources reports whether all resources in the rules are subresources, and there are any.
func (c *Constraints) OnlySubresources() bool {
	objects, requests := engine.SplitRequests(c.Selections(""))
	return len(objects) == 0 && len(requests) > 0
}

// Selections returns the objects that the constraints may select in a namespace, or in all if it is empty. A
// rule with versions selects objects in these or, with Equivalent, reads them in the first.
func (c *Constraints) Selections(namespace string) (out []engine.Selection) {
	all := engine.Selection{Kind: "*", Namespace: namespace, Labels: c.Objects.Written()}
	if len(c.Rules) == 0 {
		all.Group, all.Resource = "*", "*"
		return []engine.Selection{all}
	}
	for i := range c.Rules {
		s := all
		versions, names := c.Rules[i].APIVersions, c.Rules[i].ResourceNames
		switch {
		case slices.Contains(versions, "*"):
			versions = []string{""}
		case c.Equivalent && len(versions) > 0:
			s.ReadAs, versions = versions[0], []string{""}
		}
		if len(names) == 0 {
			names = []string{""}
		}
		for _, s.Group = range c.Rules[i].APIGroups {
			for _, resource := range c.Rules[i].Resources {
				s.Resource, s.Subresource, _ = strings.Cut(resource, "/")
				for _, s.Version = range versions {
					for _, s.Name = range names {
						out = append(out, s)
					}
				}
			}
		}
	}
	return out
}

// Operations returns the distinct operations of the rules; none if a rule leaves them open.
func (c *Constraints) Operations() (out []engine.Operation) {
	for i := range c.Rules {
		operations := c.Rules[i].Operations
		if len(operations) == 0 || slices.Contains(operations, admissionregistrationv1.OperationAll) {
			return nil
		}
		for _, o := range operations {
			out = append(out, engine.Operation(o))
		}
	}
	return engine.Distinct(out)
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
func (c *Constraints) Where() (out []string) {
	for i := range c.Rules {
		if scope := ptr.Deref(c.Rules[i].Scope, anyScope); scope != anyScope {
			out = append(out, "scope of "+strings.Join(c.Rules[i].Resources, ", ")+": "+string(scope))
		}
	}
	if c.Namespaces != nil {
		out = append(out, "namespaceSelector: "+c.Namespaces.String())
	}
	for i := range c.Excluded {
		out = append(out, "unless "+c.Excluded[i:i+1].String())
	}
	return out
}

// Describe describes the constraints without operations.
func (c *Constraints) Describe() (out []string) {
	if len(c.Rules) > 0 {
		out = append(out, "resourceRules: "+c.Rules.String())
	}
	if c.Objects != nil {
		out = append(out, "objectSelector: "+c.Objects.String())
	}
	return append(out, c.Where()...)
}
