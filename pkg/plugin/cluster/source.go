package cluster

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// SourceOptions tune a Source.
type SourceOptions struct {
	// Warn is called for each warning, such as Namespaces that cannot be read. It is called by
	// one goroutine at a time; nil drops them.
	Warn func(error)
	// Listed, if set, is called after each page of a listing with the numbers of objects of the resource that
	// are read and left; negative if unknown.
	Listed func(resource string, seen int, left int64)
	// Fallback, for a source of triggers, lists the namespaces to list if the user may not list all. The
	// others are left out, with one *engine.UnreadableError at the end. Nil means no fallback.
	Fallback []string
}

// Source streams the live objects in a scope, in order of group, resource, namespace and name. Each resource
// is listed once, and the next page is read ahead.
//
// A resource or object that the server refuses to return is an *engine.UnreadableError, after which the rest
// follows. A typed resource type that the server lacks, rejected credentials, and a server that does not
// respond end the stream.
func (c *Client) Source(scope engine.Scope, o SourceOptions) engine.Source {
	if o.Warn == nil {
		o.Warn = func(error) {}
	}
	return &source{client: c, scope: scope, options: o}
}

type source struct {
	client  *Client
	scope   engine.Scope
	options SourceOptions

	refused []error // the listings that the fallback replaced
}

// Pages implements engine.Source.
func (s *source) Pages(ctx context.Context, selections []engine.Selection) iter.Seq2[engine.Page, error] {
	return engine.ReadAhead(ctx, func(ctx context.Context) iter.Seq2[engine.Page, error] {
		return func(yield func(engine.Page, error) bool) {
			chosen, unknown, err := s.choose(ctx, selections)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, err := range unknown {
				if !yield(nil, err) {
					return
				}
			}
			known := uids{}
			s.refused = nil
			for _, k := range chosen {
				if !s.kind(ctx, k, known, yield) {
					return
				}
			}
			if len(s.refused) > 0 {
				yield(nil, &engine.UnreadableError{What: "what triggers rules outside of namespace " + strings.Join(s.options.Fallback, ", "), Err: &refusedError{s.refused}})
			}
		}
	})
}

// chosenKind is a resource to list, and the selection of its objects.
type chosenKind struct {
	*resource
	*engine.KindFilter
}

// choose returns the resources to list, and errors for unknown groups.
func (s *source) choose(ctx context.Context,
	selections []engine.Selection,
) (chosen []chosenKind, unknown []error, err error) {
	joined, err := engine.NewObjectFilter(selections, s.scope)
	if err != nil {
		return nil, nil, err
	}
	for _, typed := range s.scope.Only {
		_, err := s.client.resource(ctx, engine.ObjectKey{GroupKind: typed.GroupKind})
		if meta.IsNoMatchError(err) {
			return nil, nil, fmt.Errorf("the server doesn't have a resource type %q", typed.GroupKind)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	served, err := s.client.served(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, versions := range served.kinds {
		for _, r := range versions {
			if k, ok := joined.ForKind(r.mapping); ok && r.listable {
				for _, other := range versions {
					if other.listable && other.mapping.GroupVersionKind.Version == k.ReadAs() {
						r = other
					}
				}
				chosen = append(chosen, chosenKind{r, k})
				break
			}
		}
	}
	return chosen, s.unknownTo(served, selections), nil
}

// open reports whether a selection does not determine the kinds of the run.
func (s *source) open(x engine.Selection) bool {
	return len(s.scope.Only) == 0 && selector.HasWildcard(x.Kind) &&
		(x.Resource == "" || selector.HasWildcard(x.Resource))
}

// unknownTo returns errors for the groups whose kinds discovery did not return, if an open selection may
// match them.
func (s *source) unknownTo(served *catalog, selections []engine.Selection) []error {
	var out []error
	for _, gv := range served.names.UnknownGroups() {
		if slices.ContainsFunc(selections, func(x engine.Selection) bool {
			return s.open(x) && selector.MatchWildcard(x.Group, gv.Group) && open(x.Version, gv.Version)
		}) {
			out = append(out,
				&engine.UnreadableError{What: "the kinds of " + gv.String(), Err: served.names.Unknown[gv]})
		}
	}
	return out
}

// kind yields the wanted objects of one kind; it returns false to end the stream.
func (s *source) kind(ctx context.Context, k chosenKind, known uids,
	yield func(engine.Page, error) bool,
) bool {
	queries := s.client.inShard(ctx, k.resource, s.scope.Shard, s.queries(k), k.MayBeIn)
	read := 0
	listed := func(list rawList) {
		if read += len(list.items); s.options.Listed != nil {
			s.options.Listed(k.mapping.Resource.GroupResource().String(), read, list.remaining)
		}
	}
	p := page{resource: k.resource, request: s.scope.Request}
	next := func() bool {
		full := p
		p.items = nil
		return full.Len() == 0 || yield(full, nil)
	}
	for len(queries) > 0 {
		q := queries[0]
		queries = queries[1:]
		for u, err := range s.read(ctx, k, q, listed) {
			if len(s.options.Fallback) > 0 && k.namespaced() && q.namespace == "" && apierrors.IsForbidden(err) {
				s.refused = append(s.refused, err)
				for _, q.namespace = range s.options.Fallback {
					queries = append(queries, q)
				}
				break
			}
			if err != nil {
				err = unreadable(err, k.resource, q)
				var partial *engine.UnreadableError
				if !next() || !yield(nil, err) || !errors.As(err, &partial) {
					return false
				}
				break
			}
			if !k.Matches(u) || known.again(string(u.GetUID())) {
				continue
			}
			if len(p.items) == 0 && k.namespaced() {
				p.namespaces = s.readNamespaces(ctx)
			}
			if p.items = append(p.items, u); len(p.items) == pageSize && !next() {
				return false
			}
		}
	}
	return next()
}

// refusedError reports listings that the user is forbidden.
type refusedError struct{ errs []error }

// Error returns the server's first answer, and the number of the others.
func (e *refusedError) Error() string {
	text := e.errs[0].Error()
	if more := len(e.errs) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more refusals", more)
	}
	return text
}

// Unwrap returns all of them.
func (e *refusedError) Unwrap() []error { return e.errs }

// queries returns the requests that cover a kind: listings of all namespaces or of each in the scope, for all
// objects or for each named object. A named object with only one possible place is read by its name.
func (s *source) queries(k chosenKind) []query {
	base := query{labels: k.Labels()}
	if s.scope.Fields != nil {
		base.fields = s.scope.Fields.String()
	}
	namespaces := []string{""}
	if known := k.Namespaces(); k.namespaced() && len(known) > 0 {
		namespaces = known
	}
	if len(k.Keys()) == 0 {
		return base.selecting(k.Name()).in(namespaces)
	}
	var queries []query
	for _, key := range k.Keys() {
		q, at := base, namespaces
		if key.Namespace != "" && k.namespaced() {
			at = []string{key.Namespace}
		}
		if s.scope.Fields == nil && (len(at) == 1 && at[0] != "" || !k.namespaced()) {
			q.name = key.Name
		} else {
			q = q.selecting(key.Name)
		}
		queries = append(queries, q.in(at)...)
	}
	return queries
}

func (q query) in(namespaces []string) []query {
	var out []query
	for _, q.namespace = range namespaces {
		out = append(out, q)
	}
	return out
}

func (s *source) read(ctx context.Context, k chosenKind, q query,
	listed func(rawList),
) iter.Seq2[*unstructured.Unstructured, error] {
	if q.name == "" {
		return k.objects(engine.ReadAhead(ctx, func(ctx context.Context) iter.Seq2[rawList, error] {
			return s.client.list(ctx, k.resource, q)
		}), listed)
	}
	return func(yield func(*unstructured.Unstructured, error) bool) {
		yield(s.client.get(ctx, k.resource,
			engine.ObjectKey{GroupKind: k.mapping.GroupVersionKind.GroupKind(), Namespace: q.namespace, Name: q.name}))
	}
}

// unreadable turns the server's refusal of one request, or a response that is too large, into a partial
// result, unless the next requests would fail too, as with rejected credentials.
func unreadable(err error, r *resource, q query) error {
	var status apierrors.APIStatus
	partial := errors.As(err, &status) && !apierrors.IsUnauthorized(err)
	if !partial && !transport.IsTooLarge(err) {
		return err
	}
	what := r.mapping.Resource.GroupResource().String()
	if q.name != "" {
		what += "/" + q.name
	}
	if q.namespace != "" {
		what += " in namespace " + q.namespace
	}
	return &engine.UnreadableError{What: what, Err: err}
}

// pageSize is the number of objects of a page: few of a listing's are decoded at once.
const pageSize = 32

// page holds some wanted objects of a listing.
type page struct {
	items      []*unstructured.Unstructured
	resource   *resource
	namespaces map[string]*unstructured.Unstructured
	request    engine.Request
}

// Len implements engine.Page.
func (p page) Len() int { return len(p.items) }

// Target implements engine.Page.
func (p page) Target(i int) (engine.Target, error) {
	u := p.items[i]
	t := engine.Target{
		Key: engine.KeyOf(u), Object: u, OldObject: u, Namespace: p.namespaces[u.GetNamespace()],
		Mapping: p.resource.mapping, Request: p.request,
	}
	if p.request.Operation == engine.OperationCreate {
		t.OldObject = nil
	}
	return t, nil
}

// Origin is the Origin of Documents from the cluster.
const Origin = "cluster"

// PolicyDocuments reads the installed policies and their inputs: all objects of the kinds that role does not
// call foreign. Kinds of the core group are left out: policies ask for the Namespaces and ConfigMaps that are
// inputs. It also returns an error, usually an *engine.UnreadableError, for each unreadable kind.
func (c *Client) PolicyDocuments(ctx context.Context,
	role func(schema.GroupKind) engine.Role,
) ([]engine.Document, []error) {
	served, err := c.served(ctx)
	if err != nil {
		return nil, []error{err}
	}
	var documents []engine.Document
	var failures []error
	known := uids{}
	for _, r := range served.policies(role) {
		for u, err := range r.objects(c.list(ctx, r, query{}), func(rawList) {}) {
			if err != nil {
				failures = append(failures, unreadable(err, r, query{}))
			} else if !known.again(string(u.GetUID())) {
				documents = append(documents, engine.NewDocument(u, Origin))
			}
		}
	}
	return documents, failures
}

// policies returns the resources that PolicyDocuments reads.
func (cat *catalog) policies(role func(schema.GroupKind) engine.Role) []*resource {
	var out []*resource
	for _, versions := range cat.kinds {
		gk := versions[0].mapping.GroupVersionKind.GroupKind()
		if gk.Group != "" && versions[0].listable && role(gk) != engine.Foreign {
			out = append(out, versions[0])
		}
	}
	return out
}
