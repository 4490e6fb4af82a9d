package cluster

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// page holds the wanted objects of one page of a listing.
type page struct {
	items      []*unstructured.Unstructured
	bytes      int
	resource   *resource
	namespaces map[string]*unstructured.Unstructured
	request    engine.Request
}

// page picks the wanted objects and looks up their Namespaces.
func (s *source) page(ctx context.Context, k chosenKind, list rawList, known uids) *page {
	p := &page{resource: k.resource, request: s.scope.Request}
	for _, u := range list.items {
		if item := itemOf(u); !k.Matches(item.Facts()) || known.again(string(u.GetUID())) {
			continue
		}
		p.items = append(p.items, u)
	}
	if len(p.items) > 0 {
		p.bytes = decodedSize * list.bytes * len(p.items) / len(list.items)
	}
	if len(p.items) > 0 && k.namespaced() {
		p.namespaces = s.readNamespaces(ctx)
	}
	return p
}

// decodedSize is about how many times its text an object takes.
const decodedSize = 8

// Len implements engine.Page.
func (p *page) Len() int { return len(p.items) }

// Bytes is about what the objects take.
func (p *page) Bytes() int { return p.bytes }

// Target implements engine.Page.
func (p *page) Target(i int) (engine.Target, error) {
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
