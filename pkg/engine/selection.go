package engine

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Selection selects objects. Group, Version, Kind, Subresource, Namespace and Name are wildcard patterns (`*`
// any run of characters, `?` any one). An empty Group is the core group, an empty Subresource the object
// itself; an empty Version, Namespace or Name stands for any.
type Selection struct {
	Group, Version, Kind, Subresource string
	// Resource limits the kinds by their resource, such as "deployments"; a wildcard pattern, and empty for any.
	// Admission rules name resources, and only a server, or a mapper, knows their kinds.
	Resource        string
	Namespace, Name string
	Labels          *metav1.LabelSelector
	// Fields is a field selector, which only a Reader compares; empty selects everything.
	Fields string
	// ReadAs is the version in which to read the objects, where the server has it and all selections agree;
	// empty for the server's preferred version.
	ReadAs string
}

// SelectionSet is a list of distinct selections: thousands of policies may share one. The zero value is
// empty.
type SelectionSet struct {
	All []Selection // in the order in which they were added

	known map[question]bool
}

// Add adds the selections that are new.
func (s *SelectionSet) Add(all ...Selection) {
	for _, one := range all {
		if id := askedFor("list", one); !s.known[id] {
			if s.known == nil {
				s.known = map[question]bool{}
			}
			s.known[id] = true
			s.All = append(s.All, one)
		}
	}
}

// SplitRequests separates selections of objects from selections of requests to subresources. AnySubresource
// stands for both.
func SplitRequests(all []Selection) (objects, requests []Selection) {
	for _, s := range all {
		if s.Subresource != "" {
			requests = append(requests, s)
		}
		if s.Subresource == "" || s.Subresource == AnySubresource {
			s.Subresource = ""
			objects = append(objects, s)
		}
	}
	return objects, requests
}

// TellObjects separates requests to subresources with the object itself, such as its status, from others.
func TellObjects(requests []Selection) (objects, others []Selection) {
	for _, s := range requests {
		if kind, known := KindOfRequest(schema.GroupVersionKind{}, s.Subresource); known && kind.Empty() {
			objects = append(objects, s)
		} else {
			others = append(others, s)
		}
	}
	return objects, others
}

// Exact reports whether the selection selects at most a single object.
func (s Selection) Exact() bool {
	return s.Name != "" && !selector.HasWildcard(s.Namespace) && !selector.HasWildcard(s.Name) && s.ExactKind() && s.Labels == nil && s.Fields == ""
}

// ExactKind reports whether the selection is limited to a single kind.
func (s Selection) ExactKind() bool {
	return s.Resource == "" && !selector.HasWildcard(s.Group) && !selector.HasWildcard(s.Version) &&
		!selector.HasWildcard(s.Kind)
}

// MatchesResource reports whether a kind's resource, such as "deployments", is selected.
func (s Selection) MatchesResource(resource string) bool { return openOrMatch(s.Resource, resource) }

// Matches reports whether the object is selected. Resource, subresource and Fields do not count: an object
// does not show the endpoint through which it was read.
func (s Selection) Matches(u *unstructured.Unstructured) bool {
	k := KeyOf(u)
	if named := s.MatchesName(k) && openOrMatch(s.Version, k.Version); !named || s.Labels == nil {
		return named
	}
	selector, err := metav1.LabelSelectorAsSelector(s.Labels)
	return err == nil && selector.Matches(labels.Set(u.GetLabels()))
}

// MatchesKind reports whether the kind of an object is selected.
func (s Selection) MatchesKind(k ObjectKey) bool {
	return selector.MatchWildcard(s.Kind, k.Kind) && selector.MatchWildcard(s.Group, k.Group)
}

// MatchesName reports whether the kind, namespace and name of an object are selected.
func (s Selection) MatchesName(k ObjectKey) bool {
	return s.MatchesKind(k) && openOrMatch(s.Namespace, k.Namespace) && openOrMatch(s.Name, k.Name)
}

// MayMeet reports whether an object may be in both selections. Labels and versions do not count, and two
// patterns may always meet.
func (s Selection) MayMeet(other Selection) bool {
	meet := func(a, b string) bool {
		switch {
		case !selector.HasWildcard(a):
			return selector.MatchWildcard(b, a)
		case !selector.HasWildcard(b):
			return selector.MatchWildcard(a, b)
		}
		return true
	}
	open := func(a, b string) bool { return a == "" || b == "" || meet(a, b) }
	return meet(s.Group, other.Group) && meet(s.Kind, other.Kind) && open(s.Resource, other.Resource) &&
		open(s.Namespace, other.Namespace) && open(s.Name, other.Name)
}

// Mismatches lists the parts of the selection that an object does not meet, by its key and labels. An object
// of another kind is compared no further, which KindOnly reports.
func (s Selection) Mismatches(k ObjectKey, has map[string]string) []Mismatch {
	if !s.MatchesKind(k) {
		return []Mismatch{NewMismatch(partKind, s.typeText(), Selection{Group: k.Group, Kind: k.Kind}.typeText())}
	}
	var out []Mismatch
	add := func(same bool, part, wanted, found string) {
		if !same {
			out = append(out, NewMismatch(part, wanted, found))
		}
	}
	exact := s.Exact() // a whole key: no part is open
	add(exact || openOrMatch(s.Version, k.Version), "version", s.Version, k.Version)
	add(s.Subresource == k.Subresource, "subresource", s.Subresource, k.Subresource)
	add(openOrMatch(s.Namespace, k.Namespace) && (!exact || s.Namespace == k.Namespace), "namespace",
		s.Namespace, k.Namespace)
	add(openOrMatch(s.Name, k.Name), "name", s.Name, k.Name)
	if s.Labels == nil {
		return out
	}
	selector, err := metav1.LabelSelectorAsSelector(s.Labels)
	if err != nil || !selector.Matches(labels.Set(has)) {
		add(false, "labels", metav1.FormatLabelSelector(s.Labels), labels.Set(has).String())
	}
	return out
}

const partKind = "kind"

// KindOnly reports whether the Mismatches are of an object of another kind.
func KindOnly(mismatches []Mismatch) bool {
	return len(mismatches) > 0 && mismatches[0].Criterion == partKind
}

// openOrMatch reports whether a part of a selection, which may be open, covers a string.
func openOrMatch(pattern, text string) bool {
	return pattern == "" || selector.MatchWildcard(pattern, text)
}

// String formats a selection for messages: "apps/Deployment shop/web", "deployments.apps in shop with
// app=web", "*". A part known only when a rule runs is "(computed)".
func (s Selection) String() string {
	var b strings.Builder
	b.WriteString(s.typeText())
	for _, part := range []*string{&s.Namespace, &s.Name} {
		if *part == Computed {
			*part = "(computed)"
		}
	}
	if s.Subresource != "" {
		b.WriteString("/" + s.Subresource)
	}
	switch {
	case s.Name != "" && s.Namespace != "":
		b.WriteString(" " + s.Namespace + "/" + s.Name)
	case s.Name != "":
		b.WriteString(" " + s.Name)
	case s.Namespace != "":
		b.WriteString(" in " + s.Namespace)
	}
	if s.Labels != nil && len(s.Labels.MatchLabels)+len(s.Labels.MatchExpressions) > 0 {
		b.WriteString(" with " + metav1.FormatLabelSelector(s.Labels))
	}
	return b.String()
}

func (s Selection) typeText() string {
	group := s.Group
	if group == "*" {
		group = ""
	}
	switch {
	case s.Resource != "" && group != "":
		return s.Resource + "." + group
	case s.Resource != "":
		return s.Resource
	case group != "":
		return group + "/" + s.Kind
	}
	return s.Kind
}

// ObjectFilter decides which objects a Source hands out: objects in both the user's scope and a selection of
// the policies. It is immutable.
type ObjectFilter struct {
	selections []selection
	scope      Scope
}

type selection struct {
	Selection
	labels labels.Selector
}

// NewObjectFilter compiles the selections. A label selector that no server would accept is an error.
func NewObjectFilter(selections []Selection, scope Scope) (*ObjectFilter, error) {
	c := &ObjectFilter{scope: scope}
	for _, s := range selections {
		compiled := selection{Selection: s, labels: labels.Everything()}
		if s.Labels != nil {
			var err error
			if compiled.labels, err = metav1.LabelSelectorAsSelector(s.Labels); err != nil {
				return nil, fmt.Errorf("label selector for %s: %w", s.Kind, err)
			}
		}
		c.selections = append(c.selections, compiled)
	}
	return c, nil
}

// KindFilter is an ObjectFilter for the objects of one kind, read in one version.
type KindFilter struct {
	selections []selection
	scope      Scope
	names      []ObjectKey
	explicit   bool // a policy or the user named the kind, not just a wildcard
}

// ForKind returns the filter for a kind; false when it selects none of its objects.
func (c *ObjectFilter) ForKind(m *meta.RESTMapping) (*KindFilter, bool) {
	gvk := m.GroupVersionKind
	// Namespaces of the scope do not apply to cluster-scoped objects if the user typed their kind, as in kubectl
	// get.
	typed := slices.DeleteFunc(slices.Clone(c.scope.Only),
		func(key ObjectKey) bool { return key.GroupKind != gvk.GroupKind() })
	if m.Scope.Name() != meta.RESTScopeNameNamespace && !c.scope.ClusterScoped && len(typed) == 0 {
		return nil, false
	}
	k := &KindFilter{scope: c.scope}
	for _, s := range c.selections {
		if s.MatchesKind(ObjectKey{GroupKind: gvk.GroupKind()}) && openOrMatch(s.Version, gvk.Version) &&
			s.MatchesResource(m.Resource.Resource) && c.reaches(m, s) {
			k.selections = append(k.selections, s)
			k.explicit = k.explicit || s.Kind != "*" || (s.Resource != "" && s.Resource != "*")
		}
	}
	if len(k.selections) == 0 || len(c.scope.Only) > 0 && len(typed) == 0 {
		return nil, false
	}
	k.explicit = k.explicit || len(typed) > 0
	if !slices.ContainsFunc(typed, func(key ObjectKey) bool { return key.Name == "" }) {
		k.names = Distinct(typed)
	}
	return k, k.explicit || !leftOutOfWildcards[gvk.GroupKind()]
}

// reaches reports whether a selection covers a namespace of the scope.
func (c *ObjectFilter) reaches(m *meta.RESTMapping, s selection) bool {
	return len(c.scope.Namespaces) == 0 || m.Scope.Name() != meta.RESTScopeNameNamespace ||
		len(c.scope.within(s.Namespace)) > 0
}

// Matches reports whether an object is to be evaluated. Objects of a controller must be named explicitly.
func (k *KindFilter) Matches(u *unstructured.Unstructured) bool {
	if !k.explicit && metav1.GetControllerOfNoCopy(u) != nil {
		return false
	}
	namespace, name, set := u.GetNamespace(), u.GetName(), labels.Set(u.GetLabels())
	if !k.scope.reaches(KeyOf(u), set) || !k.scope.Shard.Has(namespace, name) {
		return false
	}
	if len(k.names) > 0 &&
		!slices.ContainsFunc(k.names, func(key ObjectKey) bool { return namesObject(key, namespace, name) }) {
		return false
	}
	return slices.ContainsFunc(k.selections, func(s selection) bool {
		return openOrMatch(s.Namespace, namespace) && openOrMatch(s.Name, name) && s.labels.Matches(set)
	})
}

// Keys lists the objects that the user named; empty if the user named none.
func (k *KindFilter) Keys() []ObjectKey { return k.names }

// Namespaces returns the possible namespaces of matching objects; none if unknown. It is meaningful only for
// namespaced kinds.
func (k *KindFilter) Namespaces() []string {
	if listed := k.scope.Listed(); len(listed) > 0 {
		return slices.DeleteFunc(slices.Clone(listed), func(namespace string) bool { return !k.MayBeIn(namespace) })
	}
	if one := k.shared(func(s selection) string { return s.Namespace }); one != "" {
		return []string{one}
	}
	return nil
}

// MayBeIn reports whether matching objects can be in a namespace.
func (k *KindFilter) MayBeIn(namespace string) bool {
	return slices.ContainsFunc(k.selections,
		func(s selection) bool { return openOrMatch(s.Namespace, namespace) })
}

// Name returns the only possible name of matching objects; empty when there may be several.
func (k *KindFilter) Name() string {
	return k.shared(func(s selection) string { return s.Name })
}

// ReadAs returns the version that all selections ask to read the objects in, if any.
func (k *KindFilter) ReadAs() string {
	return k.shared(func(s selection) string { return s.ReadAs })
}

// Labels returns a label selector for a server that covers all matching objects.
func (k *KindFilter) Labels() string {
	all := labels.Everything()
	if k.scope.Labels != nil {
		all = k.scope.Labels
	}
	if len(k.selections) != 1 {
		return all.String()
	}
	requirements, selectable := k.selections[0].labels.Requirements()
	if !selectable {
		return all.String()
	}
	return all.DeepCopySelector().Add(requirements...).String()
}

// shared returns the string without wildcards on which all selections agree, if any.
func (k *KindFilter) shared(part func(selection) string) string {
	text := part(k.selections[0])
	if selector.HasWildcard(text) {
		return ""
	}
	for _, s := range k.selections[1:] {
		if part(s) != text {
			return ""
		}
	}
	return text
}

func namesObject(key ObjectKey, namespace, name string) bool {
	return key.Name == name && (key.Namespace == "" || key.Namespace == namespace)
}

// leftOutOfWildcards are kinds with many short-lived objects that users do not configure.
var leftOutOfWildcards = map[schema.GroupKind]bool{ //nolint:gochecknoglobals // an immutable table
	{Kind: "Event"}:                                    true,
	{Group: "events.k8s.io", Kind: "Event"}:            true,
	{Group: "coordination.k8s.io", Kind: "Lease"}:      true,
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}: true,
}
