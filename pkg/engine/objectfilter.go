package engine

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// ObjectFilter decides which objects a Source hands out: those that some selection of
// the policies and the user's scope both select. It is immutable.
type ObjectFilter struct {
	selections []selection
	scope      Scope
}

type selection struct {
	Selection
	labels labels.Selector
}

// NewObjectFilter compiles the selections. It returns an error for a label selector that no
// server would accept.
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

// ForKind returns the filter for a kind; false when it selects no object of the kind.
func (c *ObjectFilter) ForKind(m *meta.RESTMapping) (*KindFilter, bool) {
	gvk := m.GroupVersionKind
	// The namespaces of the scope do not apply to objects that have none if the user typed their kind, as in kubectl get.
	typed := slices.DeleteFunc(slices.Clone(c.scope.Only), func(key ObjectKey) bool { return key.GroupKind != gvk.GroupKind() })
	if m.Scope.Name() != meta.RESTScopeNameNamespace && !c.scope.ClusterScoped && len(typed) == 0 {
		return nil, false
	}
	k := &KindFilter{scope: c.scope}
	for _, s := range c.selections {
		if s.matchesKind(gvk) && s.MatchesResource(m.Resource.Resource) && c.reaches(m, s) {
			k.selections = append(k.selections, s)
			k.explicit = k.explicit || s.Kind != "*" || (s.Resource != "" && s.Resource != "*")
		}
	}
	if len(k.selections) == 0 || len(c.scope.Only) > 0 && len(typed) == 0 {
		return nil, false
	}
	if k.explicit = k.explicit || len(typed) > 0; !slices.ContainsFunc(typed, func(key ObjectKey) bool { return key.Name == "" }) {
		k.names = Distinct(typed)
	}
	return k, k.explicit || !leftOutOfWildcards[gvk.GroupKind()]
}

// reaches reports whether a selection covers a namespace of the scope.
func (c *ObjectFilter) reaches(m *meta.RESTMapping, s selection) bool {
	return len(c.scope.Namespaces) == 0 || m.Scope.Name() != meta.RESTScopeNameNamespace || len(c.scope.within(s.Namespace)) > 0
}

// ObjectFacts is what the choice of an object depends on.
type ObjectFacts struct {
	Namespace, Name string
	Labels          map[string]string
	// Controlled reports whether the object is owned by a controller.
	Controlled bool
}

// Matches reports whether an object is to be evaluated.
func (k *KindFilter) Matches(f ObjectFacts) bool {
	if f.Controlled && !k.explicit {
		return false
	}
	if !k.scope.reaches(f.Namespace, f.Labels) || !k.scope.Shard.Has(f.Namespace, f.Name) {
		return false
	}
	if len(k.names) > 0 && !slices.ContainsFunc(k.names, func(key ObjectKey) bool { return names(key, f.Namespace, f.Name) }) {
		return false
	}
	return slices.ContainsFunc(k.selections, func(s selection) bool { return s.matches(f) })
}

// Keys lists the objects that the user named; empty if there is no such restriction.
func (k *KindFilter) Keys() []ObjectKey { return k.names }

// Namespaces returns the namespaces that matching objects can be in; none where these are not known. It is meaningful
// for namespaced kinds only.
func (k *KindFilter) Namespaces() []string {
	if len(k.scope.Namespaces) > 0 {
		return slices.DeleteFunc(slices.Clone(k.scope.Namespaces), func(namespace string) bool { return !k.MayBeIn(namespace) })
	}
	if one := k.shared(func(s selection) string { return s.Namespace }); one != "" {
		return []string{one}
	}
	return nil
}

// MayBeIn reports whether matching objects can be in a namespace.
func (k *KindFilter) MayBeIn(namespace string) bool {
	return slices.ContainsFunc(k.selections, func(s selection) bool { return openOrMatch(s.Namespace, namespace) })
}

// Name returns the one name that matching objects can have; empty when there may be
// several.
func (k *KindFilter) Name() string {
	return k.shared(func(s selection) string { return s.Name })
}

// ReadAs returns the version that all selections ask to read the objects in, if any.
func (k *KindFilter) ReadAs() string {
	return k.shared(func(s selection) string { return s.ReadAs })
}

// Labels returns a label selector, as a server takes it, that covers all matching
// objects.
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

// shared returns the text without wildcards that all selections agree on, if any.
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

func names(key ObjectKey, namespace, name string) bool {
	return key.Name == name && (key.Namespace == "" || key.Namespace == namespace)
}

// matchesKind ignores selections of a subresource alone: a live object is evaluated as
// itself.
func (s selection) matchesKind(gvk schema.GroupVersionKind) bool {
	return selector.MatchWildcard(s.Subresource, "") && selector.MatchWildcard(s.Group, gvk.Group) &&
		openOrMatch(s.Version, gvk.Version) && selector.MatchWildcard(s.Kind, gvk.Kind)
}

func (s selection) matches(f ObjectFacts) bool {
	return openOrMatch(s.Namespace, f.Namespace) && openOrMatch(s.Name, f.Name) && s.labels.Matches(labels.Set(f.Labels))
}

// leftOutOfWildcards are kinds of which there are many short-lived objects that
// users do not configure.
var leftOutOfWildcards = map[schema.GroupKind]bool{ //nolint:gochecknoglobals // an immutable table
	{Kind: "Event"}:                                    true,
	{Group: "events.k8s.io", Kind: "Event"}:            true,
	{Group: "coordination.k8s.io", Kind: "Lease"}:      true,
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}: true,
}
