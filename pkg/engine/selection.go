package engine

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Selection names objects worth reading. Group, Version, Kind, Subresource,
// Namespace and Name are wildcard patterns (`*` any run of characters, `?` any
// one). An empty Group is the core group and an empty Subresource is the object
// itself; an empty Version, Namespace or Name leaves that part open.
type Selection struct {
	Group, Version, Kind, Subresource string
	// Resource narrows the kinds to those whose resource has this name, such as
	// "deployments"; a wildcard pattern, and empty for any. Rules of admission name
	// resources, and only a server, or a mapper, knows of which kinds they are.
	Resource        string
	Namespace, Name string
	Labels          *metav1.LabelSelector
	// ReadAs is the version to read the objects in where a server has the choice,
	// and no other selection asks otherwise; empty for the server's own choice.
	ReadAs string
}

// Exact tells whether the selection can only name a single object.
func (s Selection) Exact() bool {
	return s.Name != "" && !selector.HasWildcard(s.Namespace) && !selector.HasWildcard(s.Name) && s.ExactKind() && s.Labels == nil
}

// ExactKind tells whether the selection can only name objects of a single kind.
func (s Selection) ExactKind() bool {
	return s.Resource == "" && !selector.HasWildcard(s.Group) && !selector.HasWildcard(s.Version) && !selector.HasWildcard(s.Kind)
}

// Names tells whether the selection names a kind, as far as its resource is
// concerned.
func (s Selection) Names(resource string) bool { return open(s.Resource, resource) }

// Matches tells whether the selection names the object. The resource and the
// subresource are not looked at: an object does not know through which endpoint
// it was read.
func (s Selection) Matches(u *unstructured.Unstructured) bool {
	gvk := u.GroupVersionKind()
	if !selector.MatchWildcard(s.Kind, gvk.Kind) || !selector.MatchWildcard(s.Group, gvk.Group) {
		return false
	}
	if !open(s.Version, gvk.Version) || !open(s.Namespace, u.GetNamespace()) || !open(s.Name, u.GetName()) {
		return false
	}
	if s.Labels == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(s.Labels)
	return err == nil && selector.Matches(labels.Set(u.GetLabels()))
}

// Miss is one part in which an object is not what a selection names.
type Miss struct {
	Part         string // "kind", "name", "labels"
	Wanted, Seen string // empty for none
}

// String reads like "name: wants settings, is other".
func (m Miss) String() string {
	seen := "is " + m.Seen
	if m.Seen == "" {
		seen = "has none"
	}
	return m.Part + ": wants " + cmp.Or(m.Wanted, "none") + ", " + seen
}

// PartKind is the Part of a Miss beside which there is no other: an object of another
// kind is not looked at any further.
const PartKind = "kind"

// NamesKind tells whether the selection names the kind of an object.
func (s Selection) NamesKind(k ObjectKey) bool {
	return selector.MatchWildcard(s.Kind, k.Kind) && selector.MatchWildcard(s.Group, k.Group)
}

// MayName tells whether the selection names an object of this kind, namespace and
// name, as far as these are concerned.
func (s Selection) MayName(k ObjectKey) bool {
	return s.NamesKind(k) && open(s.Namespace, k.Namespace) && open(s.Name, k.Name)
}

// Misses lists the parts that keep the selection from naming an object, which is
// known by its key and labels.
func (s Selection) Misses(k ObjectKey, has map[string]string) []Miss {
	if !s.NamesKind(k) {
		return []Miss{{PartKind, s.typeText(), Selection{Group: k.Group, Kind: k.Kind}.typeText()}}
	}
	var out []Miss
	add := func(same bool, part, wanted, seen string) {
		if !same {
			out = append(out, Miss{part, wanted, seen})
		}
	}
	exact := s.Exact() // such a selection names a key, of which no part is open
	add(exact || open(s.Version, k.Version), "version", s.Version, k.Version)
	add(s.Subresource == k.Subresource, "subresource", s.Subresource, k.Subresource)
	add(open(s.Namespace, k.Namespace) && (!exact || s.Namespace == k.Namespace), "namespace", s.Namespace, k.Namespace)
	add(open(s.Name, k.Name), "name", s.Name, k.Name)
	if s.Labels == nil {
		return out
	}
	selector, err := metav1.LabelSelectorAsSelector(s.Labels)
	if err != nil || !selector.Matches(labels.Set(has)) {
		add(false, "labels", metav1.FormatLabelSelector(s.Labels), labels.Set(has).String())
	}
	return out
}

func open(pattern, text string) bool { return pattern == "" || selector.MatchWildcard(pattern, text) }

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
