package cluster

import (
	"context"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
func (s *source) page(ctx context.Context, k chosenKind, items []RawItem, known uids) *page {
	p := &page{resource: k.resource, request: s.scope.Request}
	for _, item := range items {
		facts := engine.ObjectFacts{
			Namespace: item.Namespace, Name: item.Name, Labels: item.Labels, Controlled: item.Controlled,
		}
		if !k.Matches(facts) || known.again(item.UID) {
			continue
		}
		p.items = append(p.items, item)
	}
	if len(p.items) > 0 && k.namespaced() {
		p.namespaces = s.readNamespaces(ctx)
	}
	return p
}

// partSize is how many objects are evaluated before the first of them is printed.
const partSize = 25

// inParts hands out the pages of listings in parts, so that less of them is decoded at a time.
func inParts(pages iter.Seq2[engine.Page, error]) iter.Seq2[engine.Page, error] {
	return func(yield func(engine.Page, error) bool) {
		for p, err := range pages {
			whole, ok := p.(*page)
			if !ok {
				if !yield(p, err) {
					return
				}
				continue
			}
			for items := range slices.Chunk(whole.items, partSize) {
				part := *whole
				if part.items = items; !yield(&part, nil) {
					return
				}
			}
		}
	}
}

// Len implements engine.Page.
func (p *page) Len() int { return len(p.items) }

// Bytes is the size of the objects as they were read.
func (p *page) Bytes() int {
	n := 0
	for _, item := range p.items {
		n += len(item.text)
	}
	return n
}

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
