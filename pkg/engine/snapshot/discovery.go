package snapshot

import (
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// discover answers the paths below /api and /apis that list the kinds: the stable ones of Kubernetes itself, which servers have by default, those
// of the CustomResourceDefinitions, and those of the objects.
func (s *Snapshot) discover(p engine.APIPath) ([]byte, error) {
	kinds := s.kinds(func(gvk schema.GroupVersionKind) bool { return stable(gvk.Version) && !partOfOthers(gvk) })
	if p.Version != "" {
		gv := schema.GroupVersion{Group: p.Group, Version: p.Version}
		if list := s.resources(gv, kinds); list != nil {
			return json.Marshal(list)
		}
		return nil, noSuchPath(p)
	}
	groups := groupsOf(kinds)
	switch {
	case p.Clean == "/api":
		core := metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
		return json.Marshal(core)
	case p.Group == "":
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		list.Groups = slices.DeleteFunc(groups, func(g metav1.APIGroup) bool { return g.Name == "" })
		return json.Marshal(list)
	}
	for _, g := range groups {
		if g.Name == p.Group {
			g.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
			return json.Marshal(g)
		}
	}
	return nil, noSuchPath(p)
}

// knownKinds lists the kinds that policies may name, those of Kubernetes in every version if they are
// among them.
func (s *Snapshot) knownKinds(builtin bool) []engine.KnownKind {
	var out []engine.KnownKind
	for _, gvk := range s.kinds(func(schema.GroupVersionKind) bool { return builtin }) {
		if mapping, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
			k := engine.KnownKind{GroupVersionKind: gvk, Resource: mapping.Resource.Resource, Subresources: s.subresources(gvk)}
			k.ClusterScoped = mapping.Scope.Name() == meta.RESTScopeNameRoot && !slices.Contains(k.Subresources, engine.AnySubresource)
			out = append(out, k)
		}
	}
	if builtin {
		out = append(out, otherKinds...)
	}
	return out
}

// subresources lists those that a kind is known to have. Any built-in kind may have a status.
func (s *Snapshot) subresources(gvk schema.GroupVersionKind) []string {
	for i := range s.custom {
		if d := &s.custom[i]; d.kind == gvk {
			return d.subresources
		}
	}
	if !slices.Contains(builtinKinds(), gvk) {
		return []string{engine.AnySubresource} // nothing is known of it but its objects
	}
	return append([]string{"status"}, builtinSubresources[gvk.GroupKind()]...)
}

// builtinSubresources are those of Kubernetes' own kinds, but for the status.
var builtinSubresources = map[schema.GroupKind][]string{ //nolint:gochecknoglobals // an immutable table
	{Kind: "Namespace"}:                  {"finalize"},
	{Kind: "Node"}:                       {"proxy"},
	{Kind: "Pod"}:                        {"attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "portforward", "proxy", "resize"},
	{Kind: "ReplicationController"}:      {"scale"},
	{Kind: "ServiceAccount"}:             {"token"},
	{Kind: "Service"}:                    {"proxy"},
	{Group: "apps", Kind: "Deployment"}:  {"scale"},
	{Group: "apps", Kind: "ReplicaSet"}:  {"scale"},
	{Group: "apps", Kind: "StatefulSet"}: {"scale"},
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: {"approval"},
}

// otherKinds are the kinds that every server has and that are not among the types of client-go,
// or are there without metadata because only requests to subresources have them.
var otherKinds = []engine.KnownKind{ //nolint:gochecknoglobals // an immutable table
	{GroupVersionKind: schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, Resource: "customresourcedefinitions"},
	{GroupVersionKind: schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}, Resource: "apiservices"},
	{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "NodeProxyOptions"}, Resource: "nodes"},
	{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "PodAttachOptions"}, Resource: "pods"},
	{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "PodExecOptions"}, Resource: "pods"},
	{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "PodPortForwardOptions"}, Resource: "pods"},
	{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "PodProxyOptions"}, Resource: "pods"},
	{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ServiceProxyOptions"}, Resource: "services"},
}

// kinds lists what there is, in order of group, version (as servers prefer them)
// and kind: of the kinds of Kubernetes those that builtin returns true for.
func (s *Snapshot) kinds(builtin func(schema.GroupVersionKind) bool) []schema.GroupVersionKind {
	var all []schema.GroupVersionKind
	for _, gvk := range builtinKinds() {
		if builtin(gvk) {
			all = append(all, gvk)
		}
	}
	for _, d := range s.custom {
		all = append(all, d.kind)
	}
	all = append(all, kindsOf(s.entries)...)
	slices.SortFunc(all, func(a, b schema.GroupVersionKind) int {
		if c := strings.Compare(a.Group, b.Group); c != 0 {
			return c
		}
		if c := version.CompareKubeAwareVersionStrings(b.Version, a.Version); c != 0 {
			return c
		}
		return strings.Compare(a.Kind, b.Kind)
	})
	return slices.Compact(all)
}

// stable reports whether a version is one like v1, and not like v1beta1 or v2alpha1.
func stable(version string) bool {
	return strings.Trim(strings.TrimPrefix(version, "v"), "0123456789") == ""
}

// partOfOthers knows the types that are only seen below objects of other kinds.
func partOfOthers(gvk schema.GroupVersionKind) bool {
	return slices.Contains([]string{"Binding", "Eviction", "RangeAllocation", "Scale", "TokenRequest"}, gvk.Kind)
}

// groupsOf lists the groups of sorted kinds, each with its versions.
func groupsOf(kinds []schema.GroupVersionKind) []metav1.APIGroup {
	var groups []metav1.APIGroup
	for _, gvk := range kinds {
		v := metav1.GroupVersionForDiscovery{GroupVersion: gvk.GroupVersion().String(), Version: gvk.Version}
		last := len(groups) - 1
		switch {
		case last < 0 || groups[last].Name != gvk.Group:
			groups = append(groups, metav1.APIGroup{
				Name: gvk.Group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v,
			})
		case !slices.Contains(groups[last].Versions, v):
			groups[last].Versions = append(groups[last].Versions, v)
		}
	}
	return groups
}

// resources lists the kinds of one version; nil when there are none.
func (s *Snapshot) resources(gv schema.GroupVersion, kinds []schema.GroupVersionKind) *metav1.APIResourceList {
	var out *metav1.APIResourceList
	for _, gvk := range kinds {
		mapping, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil || gvk.GroupVersion() != gv {
			continue
		}
		if out == nil {
			out = &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
		}
		singular, err := s.mapper.ResourceSingularizer(mapping.Resource.Resource)
		if err != nil {
			singular = "" // as servers say when they do not know it
		}
		out.APIResources = append(out.APIResources, metav1.APIResource{
			Name: mapping.Resource.Resource, SingularName: singular, Kind: gvk.Kind,
			Namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace,
			Verbs:      metav1.Verbs{"get", "list"},
		})
	}
	return out
}
