package snapshot

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
)

// definition is one version of a custom resource.
type definition struct {
	kind             schema.GroupVersionKind
	plural, singular string
	shortNames       []string
	categories       []string
	namespaced       bool
	schema           map[string]any // openAPIV3Schema; nil where there is none
	scale            *scalePaths    // nil where it has none
	subresources     []string
}

// customResource is what is read of a CustomResourceDefinition.
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

// definitionsIn finds the CustomResourceDefinitions. One that lacks what a
// definition needs defines nothing.
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
				plural: names.Plural, singular: names.Singular, shortNames: names.ShortNames, categories: names.Categories,
				namespaced: c.Spec.Scope == "Namespaced", schema: v.Schema.OpenAPIV3Schema, subresources: slices.Sorted(maps.Keys(v.Subresources)),
			}
			if scale, ok := v.Subresources["scale"]; ok {
				d.scale = &scale
			}
			out = append(out, d)
		}
	}
	return out
}

// newMapper maps, in this order of trust, custom kinds by their definitions,
// built-in kinds, and the kinds of objects about which nothing else is known:
// these are namespaced if one of them has a namespace. Over a cluster, it maps what the cluster does
// not, and no built-in kinds.
func newMapper(definitions []definition, entries []*entry, cluster meta.RESTMapper) meta.RESTMapper {
	known, kinds := map[schema.GroupVersionKind]bool{}, kindsOf(entries)
	builtin, versions := builtinKinds(), scheme.Scheme.PrioritizedVersionsAllGroups()
	if cluster != nil {
		builtin, versions = nil, nil
		for _, gvk := range kinds {
			_, err := cluster.RESTMapping(gvk.GroupKind(), gvk.Version)
			known[gvk] = err == nil
		}
	}
	for _, d := range definitions {
		versions = append(versions, d.kind.GroupVersion())
	}
	for _, gvk := range kinds {
		versions = append(versions, gvk.GroupVersion())
	}
	// As on a server, the most stable version is preferred and of these the newest.
	slices.SortStableFunc(versions, func(a, b schema.GroupVersion) int {
		return version.CompareKubeAwareVersionStrings(b.Version, a.Version)
	})
	mapper := meta.NewDefaultRESTMapper(slices.Compact(versions))
	for _, d := range definitions {
		if known[d.kind] {
			continue
		}
		known[d.kind] = true
		gv := d.kind.GroupVersion()
		mapper.AddSpecific(d.kind, gv.WithResource(d.plural), gv.WithResource(cmp.Or(d.singular, d.plural)), scopeOf(d.namespaced))
	}
	for _, gvk := range builtin {
		if !known[gvk] {
			known[gvk] = true
			mapper.Add(gvk, scopeOf(!clusterScoped(gvk.GroupKind())))
		}
	}
	guessed := map[schema.GroupKind]bool{}
	for _, e := range entries {
		guessed[e.key.GroupKind] = guessed[e.key.GroupKind] || e.key.Namespace != ""
	}
	for _, gvk := range kinds {
		if !known[gvk] {
			known[gvk] = true
			mapper.Add(gvk, scopeOf(guessed[gvk.GroupKind()] && !clusterScoped(gvk.GroupKind())))
		}
	}
	if cluster != nil {
		both := meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{cluster, mapper}}
		if categories, ok := cluster.(expander); ok {
			return struct {
				meta.RESTMapper
				expander
			}{both, categories}
		}
		return both
	}
	return withShortNames(mapper, definitions)
}

// expander is a restmapper.CategoryExpander.
type expander interface {
	Expand(category string) ([]schema.GroupResource, bool)
}

// kindsOf lists the kinds of objects, each once.
func kindsOf(entries []*entry) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	known := map[schema.GroupVersionKind]bool{}
	for _, e := range entries {
		if gvk := e.key.GroupVersionKind(); !known[gvk] {
			known[gvk] = true
			out = append(out, gvk)
		}
	}
	return out
}

func scopeOf(namespaced bool) meta.RESTScope {
	if namespaced {
		return meta.RESTScopeNamespace
	}
	return meta.RESTScopeRoot
}

// builtinKinds lists the types of Kubernetes that have metadata, in order.
var builtinKinds = sync.OnceValue(func() []schema.GroupVersionKind { //nolint:gochecknoglobals // an immutable table
	var kinds []schema.GroupVersionKind
	for gvk, t := range scheme.Scheme.AllKnownTypes() {
		if _, ok := reflect.PointerTo(t).MethodByName("GetObjectMeta"); ok {
			kinds = append(kinds, gvk)
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) })
	return kinds
})

// clusterScoped knows the built-in kinds that have no namespace; Go types do not
// know that. A test compares it with a real server's discovery.
func clusterScoped(gk schema.GroupKind) bool {
	switch gk.Group {
	case "":
		return slices.Contains([]string{"ComponentStatus", "Namespace", "Node", "PersistentVolume"}, gk.Kind)
	case "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io",
		"flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io", "node.k8s.io", "storagemigration.k8s.io":
		return true
	case "authorization.k8s.io":
		return gk.Kind != "LocalSubjectAccessReview"
	case "certificates.k8s.io":
		return gk.Kind != "PodCertificateRequest"
	case "networking.k8s.io":
		return slices.Contains([]string{"IngressClass", "IPAddress", "ServiceCIDR"}, gk.Kind)
	case "policy":
		return gk.Kind == "PodSecurityPolicy"
	case "rbac.authorization.k8s.io":
		return slices.Contains([]string{"ClusterRole", "ClusterRoleBinding"}, gk.Kind)
	case "resource.k8s.io":
		return !slices.Contains([]string{"ResourceClaim", "ResourceClaimTemplate"}, gk.Kind)
	case "scheduling.k8s.io":
		return gk.Kind == "PriorityClass"
	case "storage.k8s.io":
		return gk.Kind != "CSIStorageCapacity"
	default:
		return false
	}
}

// builtinShortNames are the short names of Kubernetes' own resources, which their
// Go types do not have. A test compares them with a real server's discovery.
var builtinShortNames = map[string]schema.GroupResource{ //nolint:gochecknoglobals // an immutable table
	"cm":     {Resource: "configmaps"},
	"cs":     {Resource: "componentstatuses"},
	"ep":     {Resource: "endpoints"},
	"ev":     {Resource: "events"},
	"limits": {Resource: "limitranges"},
	"no":     {Resource: "nodes"},
	"ns":     {Resource: "namespaces"},
	"po":     {Resource: "pods"},
	"pv":     {Resource: "persistentvolumes"},
	"pvc":    {Resource: "persistentvolumeclaims"},
	"quota":  {Resource: "resourcequotas"},
	"rc":     {Resource: "replicationcontrollers"},
	"sa":     {Resource: "serviceaccounts"},
	"svc":    {Resource: "services"},
	"deploy": {Group: "apps", Resource: "deployments"},
	"ds":     {Group: "apps", Resource: "daemonsets"},
	"rs":     {Group: "apps", Resource: "replicasets"},
	"sts":    {Group: "apps", Resource: "statefulsets"},
	"crd":    {Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
	"crds":   {Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
	"hpa":    {Group: "autoscaling", Resource: "horizontalpodautoscalers"},
	"cj":     {Group: "batch", Resource: "cronjobs"},
	"csr":    {Group: "certificates.k8s.io", Resource: "certificatesigningrequests"},
	"ing":    {Group: "networking.k8s.io", Resource: "ingresses"},
	"ip":     {Group: "networking.k8s.io", Resource: "ipaddresses"},
	"netpol": {Group: "networking.k8s.io", Resource: "networkpolicies"},
	"pdb":    {Group: "policy", Resource: "poddisruptionbudgets"},
	"pc":     {Group: "scheduling.k8s.io", Resource: "priorityclasses"},
	"sc":     {Group: "storage.k8s.io", Resource: "storageclasses"},
	"vac":    {Group: "storage.k8s.io", Resource: "volumeattributesclasses"},
}

// builtinCategory has Kubernetes' own resources in the category "all", the only one that it has any in but
// "api-extensions". A test compares them with a real server's discovery.
var builtinCategory = []schema.GroupResource{ //nolint:gochecknoglobals // an immutable table
	{Resource: "pods"},
	{Resource: "replicationcontrollers"},
	{Resource: "services"},
	{Group: "apps", Resource: "daemonsets"},
	{Group: "apps", Resource: "deployments"},
	{Group: "apps", Resource: "replicasets"},
	{Group: "apps", Resource: "statefulsets"},
	{Group: "autoscaling", Resource: "horizontalpodautoscalers"},
	{Group: "batch", Resource: "cronjobs"},
	{Group: "batch", Resource: "jobs"},
}

// shortNames is a mapper that also knows resources by their short names, and by categories. Those of
// Kubernetes come first, as in a server's discovery.
type shortNames struct {
	meta.RESTMapper
	custom     map[string]schema.GroupResource
	categories map[string][]schema.GroupResource
}

// withShortNames adds the short names and categories of Kubernetes' resources and of definitions.
func withShortNames(m meta.RESTMapper, definitions []definition) meta.RESTMapper {
	out := shortNames{m, map[string]schema.GroupResource{}, map[string][]schema.GroupResource{"all": slices.Clone(builtinCategory)}}
	for _, d := range definitions {
		resource := schema.GroupResource{Group: d.kind.Group, Resource: d.plural}
		for _, name := range d.shortNames {
			if _, taken := out.custom[name]; !taken {
				out.custom[name] = resource
			}
		}
		for _, name := range d.categories {
			out.categories[name] = append(out.categories[name], resource)
		}
	}
	return out
}

// Expand implements restmapper.CategoryExpander.
func (s shortNames) Expand(category string) ([]schema.GroupResource, bool) {
	resources, known := s.categories[category]
	return resources, known
}

// full is the resource that a short name stands for, and any other name as it is.
func (s shortNames) full(short schema.GroupVersionResource) schema.GroupVersionResource {
	for _, names := range []map[string]schema.GroupResource{builtinShortNames, s.custom} {
		if long, known := names[short.Resource]; known && (short.Group == "" || short.Group == long.Group) {
			return long.WithVersion(short.Version)
		}
	}
	return short
}

func (s shortNames) KindFor(r schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return s.RESTMapper.KindFor(s.full(r))
}

func (s shortNames) KindsFor(r schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return s.RESTMapper.KindsFor(s.full(r))
}
