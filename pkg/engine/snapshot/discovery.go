package snapshot

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// knownKinds lists the kinds that policies may name, those of Kubernetes in every version if they are
// among them.
func (s *Snapshot) knownKinds(builtin bool) []engine.KnownKind {
	var out []engine.KnownKind
	for _, gvk := range s.kinds(builtin) {
		if mapping, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
			out = append(out, engine.KnownKind{GroupVersionKind: gvk, Resource: mapping.Resource.Resource, Subresources: s.subresources(gvk)})
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
// and kind, with those of Kubernetes itself if they are wanted.
func (s *Snapshot) kinds(builtin bool) []schema.GroupVersionKind {
	var all []schema.GroupVersionKind
	if builtin {
		all = slices.Clone(builtinKinds())
	}
	for _, d := range s.custom {
		all = append(all, d.kind)
	}
	all = append(all, kindsOf(s.entries)...)
	slices.SortFunc(all, func(a, b schema.GroupVersionKind) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), version.CompareKubeAwareVersionStrings(b.Version, a.Version), strings.Compare(a.Kind, b.Kind))
	})
	return slices.Compact(all)
}
