package snapshot

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// discover answers discovery requests for the kinds of a server. For Kubernetes' own kinds these are the
// stable versions, as on a server with its default configuration.
func (s *Snapshot) discover(p engine.APIPath) ([]byte, error) {
	var groups []metav1.APIGroup
	for _, list := range s.published {
		gv := versionOf(list)
		switch {
		case scheme.Scheme.IsVersionRegistered(gv) && !stable(gv.Version):
			continue
		case p.Version != "" && gv == (schema.GroupVersion{Group: p.Group, Version: p.Version}):
			return json.Marshal(withoutSubresources(list))
		}
		i := slices.IndexFunc(groups, func(g metav1.APIGroup) bool { return g.Name == gv.Group })
		v := metav1.GroupVersionForDiscovery{GroupVersion: list.GroupVersion, Version: gv.Version}
		if i < 0 {
			i = len(groups)
			groups = append(groups, metav1.APIGroup{
				TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: gv.Group, PreferredVersion: v,
			})
		}
		groups[i].Versions = append(groups[i].Versions, v)
	}
	one := slices.IndexFunc(groups, func(g metav1.APIGroup) bool { return g.Name == p.Group })
	switch {
	case p.Version != "":
	case p.Clean == "/api":
		return json.Marshal(metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
		})
	case p.Group == "":
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		list.Groups = slices.DeleteFunc(groups, func(g metav1.APIGroup) bool { return g.Name == "" })
		return json.Marshal(list)
	case one >= 0:
		return json.Marshal(groups[one])
	}
	return nil, noSuchPath(p)
}

// stable reports whether a version is like v1, not like v1beta1 or v2alpha1.
func stable(version string) bool {
	return strings.Trim(strings.TrimPrefix(version, "v"), "0123456789") == ""
}

func withoutSubresources(list *metav1.APIResourceList) *metav1.APIResourceList {
	out := &metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: list.GroupVersion,
	}
	for _, r := range list.APIResources {
		if r.Verbs = (metav1.Verbs{"get", "list"}); !strings.Contains(r.Name, "/") {
			out.APIResources = append(out.APIResources, r)
		}
	}
	return out
}
