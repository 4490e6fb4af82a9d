package cluster

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// patientDiscovery is retried as all reads are; client-go itself retries interrupted responses ten times.
type patientDiscovery struct {
	*discovery.DiscoveryClient
	client *Client
}

// GroupsAndMaybeResourcesWithContext implements discovery.AggregatedDiscoveryInterfaceWithContext.
func (d patientDiscovery) GroupsAndMaybeResourcesWithContext(ctx context.Context) (
	groups *metav1.APIGroupList, resources map[schema.GroupVersion]*metav1.APIResourceList,
	failed map[schema.GroupVersion]error, err error,
) {
	var broken error
	err = d.client.retryRead(ctx, func() error {
		groups, resources, failed, broken = d.DiscoveryClient.GroupsAndMaybeResourcesWithContext(ctx)
		if utilnet.IsProbableEOF(broken) || utilnet.IsConnectionReset(broken) {
			return nil
		}
		return transport.Cause(broken)
	})
	return groups, resources, failed, cmp.Or(err, broken)
}

// resource is one resource in one version that the server serves.
type resource struct {
	mapping   *meta.RESTMapping
	listable  bool
	watchable bool
}

func (r *resource) namespaced() bool { return r.mapping.Scope.Name() == meta.RESTScopeNameNamespace }

// catalog lists the served resources, the versions of a kind with the preferred one first, in order of group
// and resource.
type catalog struct {
	kinds  [][]*resource // the versions of each kind
	byKind map[schema.GroupKind][]*resource
	names  engine.Kinds // of all resources, also the unreadable ones
	failed error        // groups whose own server did not answer
}

// served returns the catalog, which is read once.
func (c *Client) served(ctx context.Context) (*catalog, error) {
	c.catalogMu.Lock()
	defer c.catalogMu.Unlock()
	if c.catalog != nil {
		return c.catalog, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	groups, lists, err := discovery.ToCachedDiscoveryInterfaceWithContext(
		c.discovery).ServerGroupsAndResourcesWithContext(ctx)
	var partial *discovery.ErrGroupDiscoveryFailed
	errors.As(err, &partial)
	if err != nil && (partial == nil || len(lists) == 0) {
		return nil, transport.Cause(err)
	}
	c.catalog = newCatalog(groups, lists)
	if c.catalog.failed = err; partial != nil {
		c.catalog.names.Unknown = partial.Groups
	}
	return c.catalog, nil
}

// CheckKind returns an *engine.UnknownKindError for a kind that the server does not serve. If discovery
// fails, every kind counts as served.
func (c *Client) CheckKind(ctx context.Context, n engine.KindName) error {
	served, err := c.served(ctx)
	if err != nil {
		return nil
	}
	return served.names.Check(n)
}

func newCatalog(groups []*metav1.APIGroup, lists []*metav1.APIResourceList) *catalog {
	rank := map[string]int{} // of a group version within its group
	for _, g := range groups {
		for i, v := range g.Versions {
			rank[v.GroupVersion] = i
		}
		rank[g.PreferredVersion.GroupVersion] = -1
	}
	cat := &catalog{byKind: map[schema.GroupKind][]*resource{}, names: engine.Kinds{Whose: "the server has no"}}
	var resources []*resource
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // it cannot be requested by name
		}
		served := slices.Clone(list.APIResources)
		for i := range served {
			if gv.Group == "" && served[i].Name == "secrets" {
				served[i].Kind = "Secret" // whatever a proxy calls it: its values are masked
			}
			if r := newResource(gv, &served[i]); r != nil {
				resources = append(resources, r)
			}
		}
		cat.names.Add(gv, served)
	}
	slices.SortStableFunc(resources, func(a, b *resource) int {
		x, y := a.mapping.Resource, b.mapping.Resource
		return cmp.Or(cmp.Compare(x.Group, y.Group), cmp.Compare(x.Resource, y.Resource),
			cmp.Compare(rank[x.GroupVersion().String()], rank[y.GroupVersion().String()]))
	})
	var kinds []schema.GroupKind
	for _, r := range resources {
		gk := r.mapping.GroupVersionKind.GroupKind()
		if cat.byKind[gk] == nil {
			kinds = append(kinds, gk)
		}
		cat.byKind[gk] = append(cat.byKind[gk], r)
	}
	for _, gk := range kinds {
		cat.kinds = append(cat.kinds, cat.byKind[gk])
	}
	return cat
}

func newResource(gv schema.GroupVersion, r *metav1.APIResource) *resource {
	if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "get") {
		return nil // a subresource, or create-only, such as an access review
	}
	gv = schema.GroupVersion{Group: cmp.Or(r.Group, gv.Group), Version: cmp.Or(r.Version, gv.Version)}
	scope := meta.RESTScopeRoot
	if r.Namespaced {
		scope = meta.RESTScopeNamespace
	}
	return &resource{
		mapping: &meta.RESTMapping{
			Resource: gv.WithResource(r.Name), GroupVersionKind: gv.WithKind(r.Kind), Scope: scope,
		},
		listable: slices.Contains(r.Verbs, "list"), watchable: slices.Contains(r.Verbs, "watch"),
	}
}

// resource finds the resource of a key's kind; an empty version stands for the
// preferred one.
func (c *Client) resource(ctx context.Context, key engine.ObjectKey) (*resource, error) {
	cat, err := c.served(ctx)
	if err != nil {
		return nil, err
	}
	if r := cat.find(key.GroupVersionKind()); r != nil {
		return r, nil
	}
	if cat.failed != nil {
		return nil, cat.failed
	}
	noMatch := &meta.NoKindMatchError{GroupKind: key.GroupKind}
	if key.Version != "" {
		noMatch.SearchedVersions = []string{key.Version}
	}
	return nil, noMatch
}

func (cat *catalog) find(gvk schema.GroupVersionKind) *resource {
	for _, r := range cat.byKind[gvk.GroupKind()] {
		if gvk.Version == "" || gvk.Version == r.mapping.GroupVersionKind.Version {
			return r
		}
	}
	return nil
}

// HasStatus reports whether a kind has the status subresource.
func (c *Client) HasStatus(ctx context.Context, gvk schema.GroupVersionKind) (bool, error) {
	r, err := c.resource(ctx, engine.ObjectKey{GroupKind: gvk.GroupKind(), Version: gvk.Version})
	if err != nil {
		return false, err
	}
	served, err := c.served(ctx)
	return err == nil && slices.ContainsFunc(served.names.Known, func(k engine.KnownKind) bool {
		return k.GroupVersion().WithResource(k.Resource) == r.mapping.Resource &&
			slices.Contains(k.Subresources, "status")
	}), err
}

// Served returns the listable kinds in their preferred versions, in order of group and resource.
func (c *Client) Served(ctx context.Context) ([]*meta.RESTMapping, error) {
	served, err := c.served(ctx)
	if err != nil {
		return nil, err
	}
	var out []*meta.RESTMapping
	for _, versions := range served.kinds {
		if i := slices.IndexFunc(versions, func(r *resource) bool { return r.listable }); i >= 0 {
			out = append(out, versions[i].mapping)
		}
	}
	return out, nil
}

// knownMapper caches the answers of kubectl's mapper, which goes through all of discovery for each, since a
// run asks for each object. The number of resources bounds the cache.
type knownMapper struct {
	meta.RESTMapper
	restmapper.CategoryExpander
	found sync.Map // by the question
}

// KindFor implements meta.RESTMapper.
func (m *knownMapper) KindFor(r schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return known(m, r, func() (schema.GroupVersionKind, error) { return m.RESTMapper.KindFor(r) })
}

// RESTMapping implements meta.RESTMapper.
func (m *knownMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	key := [2]string{gk.String(), strings.Join(versions, ",")}
	return known(m, key, func() (*meta.RESTMapping, error) { return m.RESTMapper.RESTMapping(gk, versions...) })
}

func known[T any](m *knownMapper, question any, find func() (T, error)) (T, error) {
	if answer, ok := m.found.Load(question); ok {
		return answer.(T), nil
	}
	answer, err := find()
	if err == nil {
		m.found.Store(question, answer)
	}
	return answer, err
}
