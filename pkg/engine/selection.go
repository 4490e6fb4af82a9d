package engine

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Selection selects objects. Group, Version, Kind, Subresource, Namespace and Name are
// wildcard patterns (`*` any run of characters, `?` any one). An empty Group is the
// core group and an empty Subresource is the object itself; an empty Version,
// Namespace or Name leaves that part open.
type Selection struct {
	Group, Version, Kind, Subresource string
	// Resource narrows the kinds to those whose resource has this name, such as
	// "deployments"; a wildcard pattern, and empty for any. Admission rules name
	// resources, and only a server, or a mapper, knows their kinds.
	Resource        string
	Namespace, Name string
	Labels          *metav1.LabelSelector
	// Fields is a field selector, which only a Reader compares; empty selects everything.
	Fields string
	// ReadAs is the version to read the objects in, where the server has it and all
	// selections agree; empty for the server's preferred version.
	ReadAs string
}

// SelectionSet is a list of selections, each of which is in it once: thousands of policies may select the same. The zero value is empty.
type SelectionSet struct {
	All []Selection // in the order in which they were added

	known map[question]bool
}

// Add adds those that are new.
func (s *SelectionSet) Add(all ...Selection) {
	for _, one := range all {
		if id := asked("list", one); !s.known[id] {
			if s.known == nil {
				s.known = map[question]bool{}
			}
			s.known[id] = true
			s.All = append(s.All, one)
		}
	}
}

// OfRequests reports whether the selection is of requests to a subresource, for which no live object stands.
func (s Selection) OfRequests() bool { return s.Subresource != "" && s.Subresource != AnySubresource }

// SplitRequests tells selections of objects from those of requests to subresources. AnySubresource stands for both.
func SplitRequests(all []Selection) (objects, requests []Selection) {
	for _, s := range all {
		if s.Subresource != "" {
			requests = append(requests, s)
		}
		if !s.OfRequests() {
			s.Subresource = ""
			objects = append(objects, s)
		}
	}
	return objects, requests
}

// Exact reports whether the selection can select a single object at most.
func (s Selection) Exact() bool {
	return s.Name != "" && !selector.HasWildcard(s.Namespace) && !selector.HasWildcard(s.Name) && s.ExactKind() && s.Labels == nil && s.Fields == ""
}

// ExactKind reports whether all that the selection can select is of a single kind.
func (s Selection) ExactKind() bool {
	return s.Resource == "" && !selector.HasWildcard(s.Group) && !selector.HasWildcard(s.Version) && !selector.HasWildcard(s.Kind)
}

// MatchesResource reports whether the resource of a kind, such as "deployments", is
// selected.
func (s Selection) MatchesResource(resource string) bool { return openOrMatch(s.Resource, resource) }

// Matches reports whether the object is selected. The resource, the subresource and the Fields
// do not count: an object does not show through which endpoint it was read.
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

// MayMeet reports whether there may be an object that both selections select. Labels and versions do not
// count, and of two patterns it is not known.
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

// Mismatches lists the parts of the selection that an object, known by its key and
// labels, does not meet. An object of another kind is compared no further: KindOnly
// reports that of the list.
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
	exact := s.Exact() // it selects by a whole key, of which no part is open
	add(exact || openOrMatch(s.Version, k.Version), "version", s.Version, k.Version)
	add(s.Subresource == k.Subresource, "subresource", s.Subresource, k.Subresource)
	add(openOrMatch(s.Namespace, k.Namespace) && (!exact || s.Namespace == k.Namespace), "namespace", s.Namespace, k.Namespace)
	add(openOrMatch(s.Name, k.Name), "name", s.Name, k.Name)
	if s.Labels == nil {
		return out
	}
	selector, err := metav1.LabelSelectorAsSelector(s.Labels)
	if err != nil || !selector.Matches(labels.Set(has)) {
		add(false, "labels", labelText(s.Labels), labels.Set(has).String())
	}
	return out
}

const partKind = "kind"

// KindOnly reports whether a list of Mismatches is that of an object of another kind.
func KindOnly(mismatches []Mismatch) bool {
	return len(mismatches) > 0 && mismatches[0].Criterion == partKind
}

// openOrMatch reports whether a part of a selection, which may be left open, covers
// the text.
func openOrMatch(pattern, text string) bool {
	return pattern == "" || selector.MatchWildcard(pattern, text)
}

// String is how messages name a selection: "apps/Deployment shop/web",
// "deployments.apps in shop with app=web", "*". A part that is only known when a
// rule runs is "(computed)".
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
		b.WriteString(" with " + labelText(s.Labels))
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

// labelText is a label selector as kubectl writes it; HiddenValue where it is none because what it selects is hidden.
func labelText(s *metav1.LabelSelector) string {
	if _, err := metav1.LabelSelectorAsSelector(s); err != nil && holdsHidden(s) {
		return HiddenValue
	}
	return metav1.FormatLabelSelector(s)
}

func holdsHidden(s *metav1.LabelSelector) bool {
	for name, value := range s.MatchLabels {
		if IsHidden(name) || IsHidden(value) {
			return true
		}
	}
	return slices.ContainsFunc(s.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
		return IsHidden(r.Key) || slices.ContainsFunc(r.Values, IsHidden)
	})
}
