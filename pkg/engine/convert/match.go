package convert

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/translate"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

type resourceRule struct {
	Groups, Versions, Resources, Operations []string
	kinds                                   []schema.GroupVersionKind // none for a wildcard
	// some of them may be cluster-scoped, other than Namespaces
	cluster bool
}

// selection is the match of a rule: its kinds, operations and namespaces, and further conditions.
type selection struct {
	rules      []resourceRule
	namespaces *metav1.LabelSelector
	conditions []expr.Expr
	namespace  expr.Expr // the request namespace in Kyverno's sense
}

type matcher struct {
	mapper    meta.RESTMapper
	namespace string          // of a Policy
	admission bool            // for a MutatingAdmissionPolicy
	requests  bool            // some kinds are subresources
	cluster   bool            // some objects may be cluster-scoped, other than Namespaces
	kinds     []selector.Kind // of the rule
	object    string          // the matched object: object, or request.oldObject on DELETE
	// ephemeral reports that the rule names the ephemeral containers of Pods, which a subresource request adds.
	ephemeral bool
}

func (m *matcher) selection(in, out *match.Block) *selection {
	s := &selection{}
	filters, all := in.Filters()
	m.requests = ofRequests(in) || ofRequests(out)
	if len(filters) == 0 {
		panic(refuseField("match", "", "is empty, so that the rule matches nothing"))
	}
	m.kinds = in.Kinds()
	m.constraints(s, filters, all)
	s.namespace = m.namespaceExpression(nil)
	m.matchConditions(s, filters, all)
	if out == nil {
		return s
	}
	excluded, allOf := out.Filters()
	var each []expr.Expr
	for _, f := range excluded {
		if !f.Empty() {
			each = append(each, m.filter(f, "exclude."+f.Place, true))
		}
	}
	if allOf && len(each) > 0 {
		each = []expr.Expr{expr.And(each...)}
	}
	for _, c := range each {
		s.conditions = append(s.conditions, expr.Not(c))
	}
	return s
}

// constraints sets the kinds, operations and namespaces for matchConstraints.
func (m *matcher) constraints(s *selection, filters []match.Filter, all bool) {
	var union []string
	for _, f := range filters {
		of := f.Operations
		if len(of) == 0 {
			of = []string{"CREATE", "UPDATE"}
		}
		union = append(union, of...)
	}
	union = engine.Distinct(union)
	everything := resourceRule{
		Groups: []string{"*"}, Versions: []string{"*"}, Resources: []string{"*"},
		cluster: true,
	}
	kinds := false
	for _, f := range filters {
		if all && (kinds || len(f.Kinds) == 0) {
			continue // the conditions narrow it
		}
		kinds = true
		if len(f.Kinds) == 0 {
			s.add(everything)
		}
		for _, k := range f.Kinds {
			for _, r := range m.resources(k) {
				s.add(r)
			}
		}
	}
	if !kinds {
		s.add(everything)
	}
	if slices.Contains(union, "CONNECT") && slices.ContainsFunc(filters, func(f match.Filter) bool {
		return slices.ContainsFunc(f.Kinds, func(k selector.Kind) bool { return k.Subresource != "" })
	}) {
		panic(refuseField("match", "write and try a policy for them by hand", "the operation CONNECT of subresources: requests such as those of kubectl exec are not tried here, so that nothing shows what a new policy does to them"))
	}
	if m.ephemeral && slices.Contains(union, "UPDATE") {
		s.addEphemeral()
	}
	m.object = "object"
	if slices.Contains(union, "DELETE") {
		if len(union) > 1 {
			panic(refuseField("match", "write a rule for each", "objects that are deleted beside others: a request that deletes one has it as oldObject alone"))
		}
		m.object = "request.oldObject" // which Kyverno's background controller also has
	}
	for i := range s.rules {
		s.rules[i].Operations = union
		m.cluster = m.cluster || s.rules[i].cluster
	}
	if len(filters) == 1 && filters[0].NamespaceLabels != nil {
		s.namespaces = filters[0].NamespaceLabels.Written()
	}
}

// ephemeralContainers is the subresource that adds ephemeral containers to a Pod. Kyverno's rules for Pods
// also match it.
const ephemeralContainers = "pods/ephemeralcontainers"

// addEphemeral adds requests for ephemeral containers if Pods are matched.
func (s *selection) addEphemeral() {
	for i, r := range s.rules {
		core := slices.Contains([]string{"", "*"}, r.Groups[0]) && slices.Contains([]string{"v1", "*"}, r.Versions[0])
		if core && (slices.Contains(r.Resources, "pods") || slices.Contains(r.Resources, "*")) &&
			!slices.Contains(r.Resources, ephemeralContainers) {
			s.rules[i].Resources = append(r.Resources, ephemeralContainers)
		}
	}
}

// add joins a rule with one for the same groups and versions.
func (s *selection) add(r resourceRule) {
	for i, old := range s.rules {
		if slices.Equal(old.Groups, r.Groups) && slices.Equal(old.Versions, r.Versions) {
			s.rules[i].cluster = old.cluster || r.cluster
			for _, name := range r.Resources {
				if !slices.Contains(old.Resources, name) {
					s.rules[i].Resources = append(s.rules[i].Resources, name)
				}
			}
			for _, k := range r.kinds {
				if !slices.Contains(old.kinds, k) {
					s.rules[i].kinds = append(s.rules[i].kinds, k)
				}
			}
			return
		}
	}
	s.rules = append(s.rules, r)
}

// resources returns the resource rules for a kind in Kyverno's notation.
func (m *matcher) resources(k selector.Kind) []resourceRule {
	if k.Kind == "*" && k.Subresource == "" {
		return []resourceRule{{
			Groups: []string{k.Group}, Versions: []string{k.Version},
			Resources: []string{"*"}, cluster: true,
		}}
	}
	if k.Kind == "*" {
		return []resourceRule{{
			Groups: []string{k.Group}, Versions: []string{k.Version},
			Resources: []string{"*/" + k.Subresource}, cluster: true,
		}}
	}
	if selector.HasWildcard(k.Kind) {
		panic(refuseField("match", "name the kinds", "the kind %s has a wildcard, and resources are other names", k.Kind))
	}
	mappings := m.find(k)
	if len(mappings) == 0 {
		panic(refuseField("match", translate.GiveDefinition, "the kind %s is not known, so that its resource is not known either", k.Kind))
	}
	var rules []resourceRule
	for _, mapping := range mappings {
		out := resourceRule{
			Groups: []string{mapping.Resource.Group}, Versions: []string{mapping.Resource.Version},
			Resources: []string{mapping.Resource.Resource},
		}
		out.cluster = mapping.Scope.Name() == meta.RESTScopeNameRoot && k.Kind != "Namespace"
		if k.Subresource != "" {
			out.Resources[0] += "/" + k.Subresource
		}
		if kind, ok := engine.KindOfRequest(mapping.GroupVersionKind, k.Subresource); ok {
			out.kinds = []schema.GroupVersionKind{kind}
		}
		rules = append(rules, out)
	}
	return rules
}

// find looks up a kind in its group, or in all groups if it names none.
func (m *matcher) find(k selector.Kind) []*meta.RESTMapping {
	var versions []string
	if k.Version != "" && !selector.HasWildcard(k.Version) {
		versions = []string{k.Version}
	}
	kinds := []schema.GroupVersionKind{{Group: k.Group, Kind: k.Kind}}
	if selector.HasWildcard(k.Group) {
		// an error means that there are none
		kinds, _ = m.mapper.KindsFor(schema.GroupVersionResource{Resource: strings.ToLower(k.Kind)})
		kinds = append(kinds, schema.GroupVersionKind{Kind: k.Kind})
	}
	var out []*meta.RESTMapping
	seen := map[string]bool{"extensions": true} // servers no longer have it
	for _, gvk := range kinds {
		if gvk.Kind != k.Kind || seen[gvk.Group] || !selector.MatchWildcard(k.Group, gvk.Group) {
			continue
		}
		seen[gvk.Group] = true
		if mapping, err := m.mapper.RESTMapping(gvk.GroupKind(), versions...); err == nil {
			out = append(out, mapping)
		}
	}
	return out
}

// matchConditions adds conditions that resource rules cannot express.
func (m *matcher) matchConditions(s *selection, filters []match.Filter, all bool) {
	if m.namespace != "" && m.admission {
		s.conditions = append(s.conditions, expr.Equal(m.requestNamespace(), expr.String(m.namespace)))
	}
	several := len(filters) > 1
	var any []expr.Expr
	for _, f := range filters {
		if several && all {
			c := m.filter(f, "match."+f.Place, true)
			s.conditions = append(s.conditions, c)
			continue
		}
		conditions := m.conditions(f, "match."+f.Place, several)
		if !several {
			s.conditions = append(s.conditions, conditions...)
			return
		}
		any = append(any, expr.And(conditions...))
	}
	if len(any) > 0 {
		s.conditions = appendCondition(s.conditions, anyOf(any))
	}
}

func (m *matcher) filter(f match.Filter, place string, whole bool) expr.Expr {
	return expr.And(m.conditions(f, place, whole)...)
}

// conditions returns a filter's conditions; also on kind, operation and namespace labels, unless the resource
// rules are this filter's own.
func (m *matcher) conditions(f match.Filter, place string, whole bool) []expr.Expr {
	var out []expr.Expr
	if whole {
		kinds := m.kindCondition(f)
		out = append(out, kinds...)
		if len(f.Operations) > 0 {
			out = append(out, oneOf(expr.Path("request.operation"), f.Operations))
		}
		if f.NamespaceLabels != nil {
			if m.admission {
				panic(refuseField(place+".resources.namespaceSelector", "use one rule for each namespaceSelector", "conditions of a MutatingAdmissionPolicy cannot read the Namespace"))
			}
			c := labelCondition(expr.Path("namespaceObject.metadata"), f.NamespaceLabels.Written())
			out = append(out, expr.NotEqual(expr.Name("namespaceObject"), expr.Null()), c, notNamespace())
		}
	} else if f.NamespaceLabels != nil {
		out = append(out, m.namespacedOnly(f)...)
	}
	if f.Name != "" {
		out = append(out, anyWildcard(m.nameExpression(), []string{f.Name}))
	}
	if len(f.Names) > 0 {
		out = append(out, anyWildcard(m.nameExpression(), f.Names))
	}
	if len(f.Namespaces) > 0 {
		out = append(out, anyWildcard(m.namespaceExpression(f.Kinds), f.Namespaces))
	}
	metadata := expr.Path(m.object + ".metadata")
	if f.Labels != nil {
		out = append(out, labelCondition(metadata, f.Labels.Written()))
	}
	for _, key := range sortedKeys(f.Annotations) {
		out = append(out, pairCondition(metadata, "annotations", key, f.Annotations[key]))
	}
	if len(f.Roles)+len(f.ClusterRoles) > 0 {
		field := ".roles"
		if len(f.Roles) == 0 {
			field = ".clusterRoles"
		}
		panic(refuseField(place+field, "match the users and groups that the roles are bound to, as subjects, or ask authorizer what they may do",
			"a request names the user and the groups, not their roles"))
	}
	if len(f.Subjects) > 0 {
		var any []expr.Expr
		for _, s := range f.Subjects {
			any = append(any, subjectCondition(s))
		}
		out = append(out, expr.Or(any...))
	}
	return out
}

func orEmpty(optional expr.Expr) expr.Expr { return expr.OrValue(optional, expr.String("")) }

func notNamespace() expr.Expr {
	return expr.NotEqual(expr.Path("request.kind.kind"), expr.String("Namespace"))
}

// nameExpression is the name to match.
func (m *matcher) nameExpression() expr.Expr {
	if m.object != "object" {
		return expr.Path(m.object + ".metadata.name")
	}
	return expr.OrValue(expr.Path("object.metadata.?name"), orEmpty(expr.Path("object.metadata.?generateName")))
}

// namespaceExpression is the namespace to match; for a Namespace, its own name.
func (m *matcher) namespaceExpression(kinds []selector.Kind) expr.Expr {
	if len(kinds) == 0 {
		kinds = m.kinds
	}
	namespace, other := false, false
	for _, k := range kinds {
		namespace = namespace || selector.MatchWildcard(k.Kind, "Namespace")
		other = other || k.Kind != "Namespace"
	}
	name := orEmpty(expr.Path("request.?name"))
	switch {
	case namespace && !other:
		return name
	case namespace:
		return expr.Cond(expr.Equal(expr.Path("request.kind.kind"), expr.String("Namespace")),
			name, m.requestNamespace())
	}
	return m.requestNamespace()
}

// requestNamespace is the request namespace, which is absent for cluster-scoped objects.
func (m *matcher) requestNamespace() expr.Expr {
	if m.cluster {
		return orEmpty(expr.Path("request.?namespace"))
	}
	return expr.Path("request.namespace")
}

// namespacedOnly excludes Namespaces and other cluster-scoped objects from a namespaceSelector, which never
// selects them in a ClusterPolicy.
func (m *matcher) namespacedOnly(f match.Filter) []expr.Expr {
	switch {
	case len(f.Kinds) == 0,
		slices.ContainsFunc(f.Kinds, func(k selector.Kind) bool { return selector.HasWildcard(k.Kind) }):
		return []expr.Expr{notNamespace(), expr.NotEqual(m.requestNamespace(), expr.String(""))}
	case slices.ContainsFunc(f.Kinds, func(k selector.Kind) bool { return k.Kind == "Namespace" }):
		return []expr.Expr{notNamespace()}
	}
	return nil
}

func (m *matcher) kindCondition(f match.Filter) []expr.Expr {
	subresource := orEmpty(expr.Path("request.?subResource"))
	var versions []selector.Kind // of the kinds, in order
	names, requests := map[selector.Kind][]string{}, []expr.Expr(nil)
	for _, k := range f.Kinds {
		switch {
		case k.Kind == "*" && k.Group == "*" && k.Version == "*":
			return nil
		case k.Subresource == "*":
			panic(refuseField("match", "name the subresources", "a subresource *"))
		case k.Subresource != "":
			rules := m.resources(k)
			for _, r := range rules { // the kind may be another one
				resource, _, _ := strings.Cut(r.Resources[0], "/")
				requests = append(requests, expr.And(partOf("request.resource.group", r.Groups[0]),
					partOf("request.resource.resource", resource), expr.Equal(subresource, expr.String(k.Subresource))))
			}
		default:
			version := selector.Kind{Group: k.Group, Version: k.Version}
			if names[version] == nil {
				versions = append(versions, version)
			}
			names[version] = append(names[version], k.Kind)
		}
	}
	var other []expr.Expr
	for _, v := range versions {
		other = append(other, expr.And(partOf("request.kind.group", v.Group),
			partOf("request.kind.version", v.Version), partOf("request.kind.kind", names[v]...)))
	}
	if m.requests && len(other) > 0 {
		other = []expr.Expr{expr.And(anyOf(other), oneOf(subresource, []string{"", "ephemeralcontainers"}))}
	}
	if len(other)+len(requests) == 0 {
		return nil
	}
	return []expr.Expr{anyOf(append(other, requests...))}
}

// anyOf is the disjunction of conditions, with compound ones in parentheses.
func anyOf(all []expr.Expr) expr.Expr {
	for i := range all {
		if len(all) > 1 {
			all[i] = expr.Parentheses(all[i])
		}
	}
	return expr.Or(all...)
}

func ofRequests(b *match.Block) bool {
	return b != nil && slices.ContainsFunc(b.Kinds(),
		func(k selector.Kind) bool { return k.Subresource != "" && k.Subresource != "*" })
}

// partOf is the condition that a part of a kind matches a pattern.
func partOf(path string, patterns ...string) expr.Expr {
	if slices.Contains(patterns, "*") || slices.Contains(patterns, "") && !strings.HasSuffix(path, ".group") {
		return nil
	}
	return anyWildcard(expr.Path(path), patterns)
}

func oneOf(text expr.Expr, values []string) expr.Expr {
	if len(values) == 1 {
		return expr.Equal(text, expr.String(values[0]))
	}
	return expr.Binary("in", text, expr.Strings(values...))
}

// anyWildcard is the condition that a string matches one of several patterns.
func anyWildcard(text expr.Expr, patterns []string) expr.Expr {
	if !slices.ContainsFunc(patterns, selector.HasWildcard) {
		return oneOf(text, patterns)
	}
	if len(patterns) == 1 {
		return translate.Wildcard(text, patterns[0])
	}
	parts := make([]string, len(patterns))
	for i, p := range patterns {
		parts[i] = translate.RegularExpression(p)
	}
	return expr.Method(text, "matches", expr.String("(?s)^("+strings.Join(parts, "|")+")$"))
}

// pairCondition is the condition that a string map has a pair; both parts may have wildcards.
func pairCondition(of expr.Expr, field, key, want string) expr.Expr {
	all := expr.OptionalField(of, field)
	if selector.HasWildcard(key) {
		pair := expr.And(translate.Wildcard(expr.Name("k"), key), translate.Wildcard(expr.Index(expr.Field(of, field), expr.Name("k")), want))
		return expr.Macro(expr.OrValue(all, expr.Map()), "exists", "k", pair)
	}
	value := expr.OptionalIndex(all, expr.String(key))
	if strings.Trim(want, "*") == "" { // an empty value matches too
		return expr.And(expr.HasValue(value), translate.Wildcard(orEmpty(value), want))
	}
	return translate.Wildcard(orEmpty(value), want)
}

func labelCondition(metadata expr.Expr, s *metav1.LabelSelector) expr.Expr {
	var all []expr.Expr
	for _, key := range sortedKeys(s.MatchLabels) {
		all = append(all, pairCondition(metadata, "labels", key, s.MatchLabels[key]))
	}
	for _, e := range s.MatchExpressions {
		if slices.ContainsFunc(append(slices.Clone(e.Values), e.Key), selector.HasWildcard) {
			panic(refuseField("match", "write the values out, or ask for the label in matchConditions", "a wildcard in matchExpressions"))
		}
		label := expr.OptionalIndex(expr.OptionalField(metadata, "labels"), expr.String(e.Key))
		there, empty := expr.HasValue(label), slices.Contains(e.Values, "")
		switch e.Operator {
		case metav1.LabelSelectorOpIn:
			if !empty {
				there = nil
			}
			all = append(all, expr.And(there, oneOf(orEmpty(label), e.Values)))
		case metav1.LabelSelectorOpNotIn:
			c := expr.Not(expr.Binary("in", orEmpty(label), expr.Strings(e.Values...)))
			if empty {
				c = expr.Or(expr.Not(there), c)
			}
			all = append(all, c)
		case metav1.LabelSelectorOpExists:
			all = append(all, there)
		case metav1.LabelSelectorOpDoesNotExist:
			all = append(all, expr.Not(there))
		default:
			panic(refuseField("match", "", "the operator %s of a selector", e.Operator))
		}
	}
	return expr.And(all...)
}

func subjectCondition(s match.Subject) expr.Expr {
	user := orEmpty(expr.Path("request.userInfo.?username"))
	switch s.Kind {
	case "Group":
		return expr.Macro(expr.OrValue(expr.Path("request.userInfo.?groups"), expr.List()),
			"exists", "g", translate.Wildcard(expr.Name("g"), s.Name))
	case "ServiceAccount":
		return translate.Wildcard(user, "system:serviceaccount:"+s.Namespace+":"+s.Name)
	}
	return translate.Wildcard(user, s.Name)
}
