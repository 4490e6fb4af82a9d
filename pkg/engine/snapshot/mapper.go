package snapshot

import (
	"cmp"
	_ "embed"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// definition is one version of a kind.
type definition struct {
	kind      schema.GroupVersionKind
	resources []metav1.APIResource // as a server publishes it: itself, and its subresources
	schema    map[string]any       // openAPIV3Schema of a custom resource; nil for none
	scale     *scalePaths          // nil for a custom resource without one
}

// customResource is the part of a CustomResourceDefinition that is read.
type customResource struct {
	Spec struct {
		Group string `json:"group"`
		Scope string `json:"scope"`
		Names struct {
			Kind       string   `json:"kind"`
			Plural     string   `json:"plural"`
			Singular   string   `json:"singular"`
			ShortNames []string `json:"shortNames"`
			Categories []string `json:"categories"`
		} `json:"names"`
		Versions []struct {
			Name   string `json:"name"`
			Schema struct {
				OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
			} `json:"schema"`
			Subresources map[string]scalePaths `json:"subresources"`
		} `json:"versions"`
	} `json:"spec"`
}

// definitionsIn finds the CustomResourceDefinitions. An incomplete one defines nothing.
func definitionsIn(entries []*entry) []definition {
	var out []definition
	for _, e := range entries {
		if e.key.Group != "apiextensions.k8s.io" || e.key.Kind != "CustomResourceDefinition" {
			continue
		}
		var c customResource
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(e.unpacked.Object, &c)
		names := c.Spec.Names
		if err != nil || c.Spec.Group == "" || names.Kind == "" || names.Plural == "" {
			continue
		}
		for _, v := range c.Spec.Versions {
			if v.Name == "" {
				continue
			}
			d := definition{
				kind:   schema.GroupVersionKind{Group: c.Spec.Group, Version: v.Name, Kind: names.Kind},
				schema: v.Schema.OpenAPIV3Schema,
			}
			served := metav1.APIResource{
				Name: names.Plural, SingularName: cmp.Or(names.Singular, strings.ToLower(names.Kind)), Kind: names.Kind,
				Namespaced: c.Spec.Scope == "Namespaced", ShortNames: names.ShortNames, Categories: names.Categories,
			}
			d.resources = append(d.resources, served)
			for name := range v.Subresources {
				d.resources = append(d.resources,
					metav1.APIResource{Name: names.Plural + "/" + name, Kind: names.Kind, Namespaced: served.Namespaced})
			}
			if scale, ok := v.Subresources["scale"]; ok {
				d.scale = &scale
			}
			out = append(out, d)
		}
	}
	return out
}

// publishedText is the discovery of a Kubernetes 1.36 server that serves all of its APIs, without the verbs.
//
//go:embed kubernetes.json
var publishedText []byte

// builtin are the types of Kubernetes that have metadata: as a server publishes them, and then versions that
// it no longer serves, or not yet.
var builtin = sync.OnceValue(func() (out []definition) { //nolint:gochecknoglobals // an immutable table
	var lists []metav1.APIResourceList
	if err := kjson.UnmarshalCaseSensitivePreserveInts(publishedText, &lists); err != nil {
		panic(err) // what the program is built with
	}
	known, ofKind := map[schema.GroupVersionKind]bool{}, map[schema.GroupKind][]metav1.APIResource{}
	for _, list := range lists {
		gv := versionOf(&list)
		for len(list.APIResources) > 0 { // subresources follow their resource
			n := 1
			for n < len(list.APIResources) && strings.Contains(list.APIResources[n].Name, "/") {
				n++
			}
			kind := gv.WithKind(list.APIResources[0].Kind)
			known[kind], ofKind[kind.GroupKind()] = true, list.APIResources[:n:n]
			out = append(out, definition{kind: kind, resources: list.APIResources[:n:n]})
			list.APIResources = list.APIResources[n:]
		}
	}
	var others []definition
	for gvk, t := range scheme.Scheme.AllKnownTypes() {
		if _, ok := reflect.PointerTo(t).MethodByName("GetObjectMeta"); !ok || known[gvk] {
			continue
		}
		other := guess(gvk, true)
		if resources := ofKind[gvk.GroupKind()]; resources != nil {
			other.resources = resources
		}
		others = append(others, other)
	}
	slices.SortFunc(others, func(a, b definition) int { return cmp.Compare(a.kind.String(), b.kind.String()) })
	return append(out, others...)
})

// guess returns the definition of a kind that is known only from its objects.
func guess(gvk schema.GroupVersionKind, namespaced bool) definition {
	plural, singular := meta.UnsafeGuessKindToResource(gvk)
	return definition{kind: gvk, resources: []metav1.APIResource{
		{Name: plural.Resource, SingularName: singular.Resource, Kind: gvk.Kind, Namespaced: namespaced},
		{Name: plural.Resource + "/" + engine.AnySubresource, Kind: gvk.Kind, Namespaced: namespaced},
	}}
}

// Resources yields the names of Kubernetes' own resources, in the plural and in the singular.
func Resources() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, d := range builtin() {
			if r := &d.resources[0]; !yield(r.Name) || !yield(r.SingularName) {
				return
			}
		}
	}
}

// publish returns, in order of trust, Kubernetes' own kinds, custom kinds by their definitions, and kinds
// that are known only from objects, namespaced if one of these has a namespace. Over a cluster, which has
// them, Kubernetes' own kinds are left out. As on a server, the most stable version is preferred, then the
// newest.
func publish(definitions []definition, entries []*entry, overCluster bool) []*metav1.APIResourceList {
	var all []definition
	if !overCluster {
		all = builtin()
	}
	all = slices.Concat(all, definitions)
	namespaced := map[schema.GroupKind]bool{}
	for _, e := range entries {
		namespaced[e.key.GroupKind] = namespaced[e.key.GroupKind] || e.key.Namespace != ""
	}
	known := map[schema.GroupVersionKind]bool{}
	for _, d := range all {
		known[d.kind] = true
	}
	for _, e := range entries {
		if gvk := e.key.GroupVersionKind(); !known[gvk] {
			known[gvk] = true
			all = append(all, guess(gvk, namespaced[e.key.GroupKind]))
		}
	}
	lists, rank := map[schema.GroupVersion][]metav1.APIResource{}, map[string]int{}
	for _, d := range all {
		gv := d.kind.GroupVersion()
		if _, known := rank[gv.Group]; !known {
			rank[gv.Group] = len(rank)
		}
		lists[gv] = append(lists[gv], d.resources...)
	}
	var out []*metav1.APIResourceList
	for _, gv := range slices.SortedFunc(maps.Keys(lists), func(a, b schema.GroupVersion) int {
		return cmp.Or(cmp.Compare(rank[a.Group], rank[b.Group]),
			version.CompareKubeAwareVersionStrings(b.Version, a.Version))
	}) {
		out = append(out, &metav1.APIResourceList{GroupVersion: gv.String(), APIResources: lists[gv]})
	}
	return out
}

// mapper maps the published kinds. Like kubectl's, it knows their short names and categories.
type mapper struct {
	meta.RESTMapper
	published []*metav1.APIResourceList
}

// newMapper returns the mapper of the published kinds, over a cluster if there is one.
func newMapper(published []*metav1.APIResourceList, cluster meta.RESTMapper) meta.RESTMapper {
	var versions []schema.GroupVersion
	for _, list := range published {
		versions = append(versions, versionOf(list))
	}
	kinds := meta.NewDefaultRESTMapper(versions)
	for _, list := range published {
		for _, r := range list.APIResources {
			scope := meta.RESTScopeRoot
			if r.Namespaced {
				scope = meta.RESTScopeNamespace
			}
			if gv := versionOf(list); !strings.Contains(r.Name, "/") {
				kinds.AddSpecific(gv.WithKind(r.Kind), gv.WithResource(r.Name), gv.WithResource(r.SingularName), scope)
			}
		}
	}
	if cluster == nil {
		return mapper{kinds, published}
	}
	both := meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{cluster, kinds}}
	if categories, ok := cluster.(expander); ok {
		return struct {
			meta.RESTMapper
			expander
		}{both, categories}
	}
	return both
}

// expander is a restmapper.CategoryExpander.
type expander interface {
	Expand(category string) ([]schema.GroupResource, bool)
}

// Expand implements restmapper.CategoryExpander.
func (m mapper) Expand(category string) ([]schema.GroupResource, bool) {
	return m.find(func(r *metav1.APIResource) bool { return slices.Contains(r.Categories, category) })
}

// Served lists the kinds whose objects a server with this snapshot lists, each in its preferred version, in
// order of group and resource. Of Kubernetes' own kinds these are the stable ones.
func (s *Snapshot) Served() []*meta.RESTMapping {
	var out []*meta.RESTMapping
	known := map[schema.GroupKind]bool{}
	for _, list := range s.published { // of a group the preferred version first
		for i := range list.APIResources {
			r, gv := &list.APIResources[i], versionOf(list)
			gvk := gv.WithKind(r.Kind)
			if known[gvk.GroupKind()] || strings.Contains(r.Name, "/") || scheme.Scheme.Recognizes(gvk) &&
				!lists(gv, list.APIResources[i:]) {
				continue
			}
			known[gvk.GroupKind()] = true
			if m, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
				out = append(out, m)
			}
		}
	}
	slices.SortFunc(out, func(a, b *meta.RESTMapping) int {
		return cmp.Or(cmp.Compare(a.Resource.Group, b.Resource.Group),
			cmp.Compare(a.Resource.Resource, b.Resource.Resource))
	})
	return out
}

// lists reports whether a server lists objects of a Kubernetes kind, whose resource comes first: not for
// kinds that are only requests, nor for unpublished types, which are guessed.
func lists(gv schema.GroupVersion, r []metav1.APIResource) bool {
	guessed := len(r) > 1 && r[1].Name == r[0].Name+"/"+engine.AnySubresource
	return stable(gv.Version) && !guessed && r[0].Kind != "Binding" && !strings.HasSuffix(r[0].Kind, "Review")
}

// HasStatus reports whether a kind's status has an endpoint of its own.
func (s *Snapshot) HasStatus(gvk schema.GroupVersionKind) bool {
	m, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	return err == nil && slices.ContainsFunc(s.published, func(list *metav1.APIResourceList) bool {
		return versionOf(list) == gvk.GroupVersion() &&
			slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool {
				return r.Name == m.Resource.Resource+"/status"
			})
	})
}

// find returns the resources that satisfy a function, and whether there are any.
func (m mapper) find(is func(*metav1.APIResource) bool) (out []schema.GroupResource, ok bool) {
	for _, list := range m.published {
		for i := range list.APIResources {
			if r := &list.APIResources[i]; is(r) {
				out = append(out, versionOf(list).WithResource(r.Name).GroupResource())
			}
		}
	}
	return out, len(out) > 0
}

// full returns the resource of a short name, and any other name as it is.
func (m mapper) full(short schema.GroupVersionResource) schema.GroupVersionResource {
	known, _ := m.find(func(r *metav1.APIResource) bool { return slices.Contains(r.ShortNames, short.Resource) })
	for _, long := range known {
		if short.Group == "" || short.Group == long.Group {
			return long.WithVersion(short.Version)
		}
	}
	return short
}

// KindFor implements meta.RESTMapper.
func (m mapper) KindFor(r schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return m.RESTMapper.KindFor(m.full(r))
}

// KindsFor implements meta.RESTMapper.
func (m mapper) KindsFor(r schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return m.RESTMapper.KindsFor(m.full(r))
}

func versionOf(list *metav1.APIResourceList) schema.GroupVersion {
	gv, _ := schema.ParseGroupVersion(list.GroupVersion) // it is valid
	return gv
}
