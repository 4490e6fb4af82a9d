package snapshot

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

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
