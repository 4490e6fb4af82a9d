package cluster

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// page holds the wanted objects of one page of a listing, not yet decoded.
type page struct {
	items      []RawItem
	resource   *resource
	namespaces map[string]*unstructured.Unstructured
	request    engine.Request
}

// page picks the wanted items and looks up their Namespaces.
func (s *source) page(ctx context.Context, k chosenKind, items []RawItem, seen map[string]bool) *page {
	p := &page{resource: k.resource, request: s.scope.Request}
	for _, item := range items {
		facts := engine.ObjectFacts{
			Namespace: item.Namespace, Name: item.Name, Labels: item.Labels, Controlled: item.Controlled,
		}
		if !k.Matches(facts) || (item.UID != "" && seen[item.UID]) {
			continue
		}
		seen[strings.Clone(item.UID)] = true // not the page that it was cut from
		p.items = append(p.items, item)
	}
	if len(p.items) > 0 && k.namespaced() {
		p.namespaces = s.readNamespaces(ctx)
	}
	return p
}

// Len implements engine.Page.
func (p *page) Len() int { return len(p.items) }

// Target implements engine.Page: it decodes the object.
func (p *page) Target(i int) (engine.Target, error) {
	u, err := decode(p.items[i], p.resource)
	if err != nil {
		return engine.Target{}, err
	}
	t := engine.Target{
		Key: engine.KeyOf(u), Object: u, OldObject: u, Namespace: p.namespaces[u.GetNamespace()],
		Mapping: p.resource.mapping, Request: p.request,
	}
	if p.request.Operation == engine.OperationCreate {
		t.OldObject = nil
	}
	return t, nil
}

// readNamespaces reads the scope's Namespaces once. A user who may not read them
// still gets a run, in which policies do not know them.
func (s *source) readNamespaces(ctx context.Context) map[string]*unstructured.Unstructured {
	s.namespacesMu.Lock()
	defer s.namespacesMu.Unlock()
	if s.namespaces != nil {
		return s.namespaces
	}
	found := map[string]*unstructured.Unstructured{}
	selection := engine.Selection{Version: "v1", Kind: "Namespace", Name: s.scope.Namespace}
	if len(s.refused) > 0 {
		selection.Name = s.options.Fallback
	}
	for u, err := range s.client.namespaceObjects(ctx, selection) {
		if err != nil {
			s.warn(fmt.Errorf("namespaces, their labels included, are unknown to the policies: %w", err))
			break
		}
		found[u.GetName()] = u
	}
	if ctx.Err() == nil {
		s.namespaces = found
	}
	return found
}

// namespaceObjects gets the one Namespace that is named, which takes no right to
// list them, or lists all.
func (c *Client) namespaceObjects(ctx context.Context, sel engine.Selection) iter.Seq2[*unstructured.Unstructured, error] {
	if sel.Name == "" {
		return c.List(ctx, sel)
	}
	return func(yield func(*unstructured.Unstructured, error) bool) {
		yield(c.Get(ctx, engine.ObjectKey{
			GroupKind: schema.GroupKind{Kind: sel.Kind}, Version: sel.Version, Name: sel.Name,
		}))
	}
}

// readAhead lets produce work on the next page while the current one is used.
func readAhead(
	ctx context.Context, produce func(context.Context) iter.Seq2[engine.Page, error],
) iter.Seq2[engine.Page, error] {
	type result struct {
		page engine.Page
		err  error
	}
	return func(yield func(engine.Page, error) bool) {
		inner, cancel := context.WithCancel(ctx)
		results := make(chan result) // unbuffered: the producer holds one page, no more
		defer func() {
			cancel()
			for range results { // waits for the producer to end
			}
		}()
		go func() {
			defer close(results)
			for page, err := range produce(inner) {
				select {
				case results <- result{page, err}:
				case <-inner.Done():
					return
				}
			}
		}()
		for r := range results {
			if !yield(r.page, r.err) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(nil, err)
		}
	}
}
