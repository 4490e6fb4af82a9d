package engine

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// KindName is a kind, or a resource, as a policy names it. All parts are wildcard patterns.
type KindName struct {
	// Groups and Versions limit the name; none stands for all.
	Groups, Versions []string
	// Kind or Resource is the name; the other one is empty.
	Kind, Resource string
	// Subresource is a subresource of the kind; empty for the objects themselves.
	Subresource string
	// Namespaced asks for a kind of objects in namespaces.
	Namespaced bool
}

// ErrClusterScoped is the error for a cluster-scoped kind where KindName.Namespaced is set.
var ErrClusterScoped = errors.New("the objects of the kind are in no namespace")

// Name is the name in the policy, without the subresource.
func (n *KindName) Name() string { return n.Kind + n.Resource }

// String is the name with the subresource: "pods/exec".
func (n *KindName) String() string { return strings.TrimSuffix(n.Name()+"/"+n.Subresource, "/") }

// sort is "kind" or "resource", for messages.
func (n *KindName) sort() string {
	if n.Resource != "" {
		return "resource"
	}
	return "kind"
}

// inGroupVersion reports whether the policy means the group and version of a kind.
func (n *KindName) inGroupVersion(k *KnownKind) bool {
	return (len(n.Groups) == 0 || selector.AnyOf(n.Groups, k.Group)) &&
		(len(n.Versions) == 0 || selector.AnyOf(n.Versions, k.Version))
}

// nameOf returns the kind, or the resource if the policy names one.
func (n *KindName) nameOf(k *KnownKind) string {
	if n.Resource != "" {
		return k.Resource
	}
	return k.Kind
}

// KnownKind is a kind in one version, and its resource. A kind used only in requests to a subresource, such
// as PodExecOptions, has the resource of the object.
type KnownKind struct {
	schema.GroupVersionKind
	Resource string
	// Subresources are the subresources of the resource; AnySubresource stands for unknown ones.
	Subresources []string
	// ClusterScoped is set where the objects are known to be in no namespace.
	ClusterScoped bool
}

// AnySubresource is the only subresource of a kind whose subresources are unknown.
const AnySubresource = "*"

// serves reports whether the kind has a subresource that matches a wildcard pattern. Every kind has "*",
// which stands for all of them.
func (k *KnownKind) serves(name string) bool {
	return name == "" || name == "*" || slices.ContainsFunc(k.Subresources, func(known string) bool {
		return known == AnySubresource || selector.MatchWildcard(name, known)
	})
}

// Kinds are all existing kinds, served by a server or known without one. It is safe for concurrent use.
type Kinds struct {
	Known []KnownKind
	// Unknown has the groups of a server whose kinds it cannot list.
	Unknown map[schema.GroupVersion]error
	// Whose begins the message about a missing kind: "the server has no".
	Whose string
}

// Add adds the kinds of a group version as a server publishes them: "pods", and "pods/exec" with the kind of
// its requests.
func (k *Kinds) Add(gv schema.GroupVersion, published []metav1.APIResource) {
	below := map[string][]string{}
	for i := range published {
		if parent, subresource, is := strings.Cut(published[i].Name, "/"); is {
			below[parent] = append(below[parent], subresource)
		}
	}
	for i := range published {
		r := &published[i]
		parent, _, _ := strings.Cut(r.Name, "/")
		k.Known = append(k.Known, KnownKind{
			GroupVersionKind: gv.WithKind(r.Kind), Resource: parent, Subresources: below[parent],
			ClusterScoped: !r.Namespaced && !slices.Contains(below[parent], AnySubresource),
		})
	}
}

// Check returns an *UnknownKindError for a name of no kind, or of no subresource of one, and ErrClusterScoped
// for a kind of another scope than asked for.
func (k *Kinds) Check(n KindName) error {
	e := &UnknownKindError{Name: n, whose: k.Whose}
	subresources := map[string]bool{} // of the kinds that the name stands for
	for i := range k.Known {
		known := &k.Known[i]
		if !selector.MatchWildcard(n.Name(), n.nameOf(known)) || !n.inGroupVersion(known) {
			continue
		}
		if known.serves(n.Subresource) {
			if n.Namespaced && known.ClusterScoped {
				return ErrClusterScoped
			}
			return nil
		}
		e.subresource = true
		for _, name := range known.Subresources {
			subresources[name] = true
		}
	}
	if e.subresource {
		if meant := Nearest(n.Subresource, maps.Keys(subresources)); meant != "" {
			e.meant = fmt.Sprintf("%q", meant)
		}
		return e
	}
	e.meant = k.meant(&n)
	for _, gv := range k.UnknownGroups() {
		if n.inGroupVersion(&KnownKind{GroupVersionKind: gv.WithKind("")}) {
			e.unknown = append(e.unknown, fmt.Errorf("%s: %w", gv, k.Unknown[gv]))
		}
	}
	return e
}

// UnknownGroups lists the keys of Unknown in order.
func (k *Kinds) UnknownGroups() []schema.GroupVersion {
	return slices.SortedFunc(maps.Keys(k.Unknown),
		func(a, b schema.GroupVersion) int { return strings.Compare(a.String(), b.String()) })
}

// maxTypos is how many letters of a name may be wrong.
const maxTypos = 2

// meant describes the kind closest to an unknown name; empty if none is near.
func (k *Kinds) meant(n *KindName) string {
	var best *KnownKind
	least := 0
	for i := range k.Known {
		known := &k.Known[i]
		typos := n.typos(known)
		if typos < 0 {
			continue
		}
		rank := 2 * typos
		if !n.inGroupVersion(known) {
			rank++
		}
		if best == nil || rank < least {
			best, least = known, rank
		}
	}
	switch {
	case best == nil:
		return ""
	case n.inGroupVersion(best):
		return fmt.Sprintf("%q", n.nameOf(best))
	}
	return fmt.Sprintf("%q of %s", n.nameOf(best), best.GroupVersion())
}

// typos counts the letters in which a name differs from a kind; 1 for a name of the other sort, in the
// singular or in another case; negative for another name.
func (n *KindName) typos(k *KnownKind) int {
	name := n.Name()
	if name == n.nameOf(k) {
		return 0
	}
	if strings.EqualFold(name, k.Kind) || strings.EqualFold(name, k.Resource) {
		return 1
	}
	for _, word := range []string{k.Kind, k.Resource} {
		if d, near := near(name, word); near {
			return d + 1
		}
	}
	return -1
}

// Nearest returns the name of which another is probably a misspelling; empty if none is near.
func Nearest(name string, names iter.Seq[string]) string {
	best, least := "", 0
	for known := range names {
		d, ok := near(name, known)
		if ok && (best == "" || d < least || d == least && known < best) {
			best, least = known, d
		}
	}
	return best
}

// longestName is the length of the longest name in Kubernetes.
const longestName = 253

// near returns the distance of two names, ignoring case, and whether the first may be a misspelling of the
// second.
func near(name, known string) (int, bool) {
	a, b, most := strings.ToLower(name), strings.ToLower(known), min(maxTypos, len(name)/3)
	if max(len(a), len(b)) > longestName+maxTypos || len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1, false
	}
	d := distance(a, b)
	return d, d <= most
}

// distance counts the letters of a string that are wrong, missing, extra or swapped with the next: the
// optimal string alignment distance.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			if i == 0 || j == 0 {
				rows[i][j] = i + j
				continue
			}
			wrong := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				wrong++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, wrong)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// UnknownKindError is a kind or resource in a policy that does not exist: the policy has no effect there.
type UnknownKindError struct {
	Name        KindName
	whose       string
	subresource bool // the kind is known
	meant       string
	unknown     []error // of groups that may have it
}

// Error suggests the name that was probably meant.
func (e *UnknownKindError) Error() string {
	text := fmt.Sprintf("%s %s %q", e.whose, e.Name.sort(), e.Name.Name())
	if e.subresource {
		text = fmt.Sprintf("%s subresource %q of the %s %q", e.whose, e.Name.Subresource,
			e.Name.sort(), e.Name.Name())
	}
	if where := e.Name.where(); where != "" {
		text += " " + where
	}
	text += ", so this has no effect"
	if len(e.unknown) > 0 {
		return text + "; it may be among those that the server does not list now: " + errors.Join(JoinErrors(e.unknown)).Error()
	}
	if e.meant != "" {
		text += "; did you mean " + e.meant + "?"
	}
	return text
}

// where names the only place in which the policy looks for the kind; empty for several.
func (n *KindName) where() string {
	gv := schema.GroupVersion{Version: "*"}
	if len(n.Groups) != 1 || n.Groups[0] == "*" {
		gv.Group = "*"
	} else {
		gv.Group = n.Groups[0]
	}
	if len(n.Versions) == 1 {
		gv.Version = n.Versions[0]
	}
	switch {
	case gv.Group == "*" && gv.Version == "*":
		return ""
	case gv.Group == "*":
		return "in version " + gv.Version
	case gv.Version == "*" && gv.Group == "":
		return "in the core group"
	case gv.Version == "*":
		return "in group " + gv.Group
	}
	return "of " + gv.String()
}

// Unwrap returns why the kinds of some groups are unknown.
func (e *UnknownKindError) Unwrap() []error { return e.unknown }

// MappingOf returns the mapping of a requested resource, by its plural name, in its group and version. A
// mapper also accepts a singular or short name, or another version; a server does not, which is a no-match
// error here.
func MappingOf(mapper meta.RESTMapper, resource schema.GroupVersionResource) (*meta.RESTMapping, error) {
	kind, err := mapper.KindFor(resource)
	if err != nil {
		return nil, err
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Resource != resource {
		return nil, &meta.NoResourceMatchError{PartialResource: resource}
	}
	return mapping, nil
}

// requestKinds are the kinds of objects in requests to subresources; empty for the object itself.
var requestKinds = map[string]schema.GroupVersionKind{ //nolint:gochecknoglobals // an immutable table
	"": {}, "status": {}, "ephemeralcontainers": {}, "resize": {}, "approval": {}, "finalize": {},
	"scale":    {Group: "autoscaling", Version: "v1", Kind: "Scale"},
	"binding":  {Version: "v1", Kind: "Binding"},
	"eviction": {Group: "policy", Version: "v1", Kind: "Eviction"},
	"token":    {Group: "authentication.k8s.io", Version: "v1", Kind: "TokenRequest"},
}

// KindOfRequest returns the kind of the objects in requests to a subresource, and whether it is known.
func KindOfRequest(of schema.GroupVersionKind, subresource string) (schema.GroupVersionKind, bool) {
	kind, known := requestKinds[subresource]
	if known && kind.Empty() {
		return of, true
	}
	return kind, known
}
