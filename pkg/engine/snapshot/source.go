package snapshot

import (
	"context"
	"fmt"
	"iter"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// pageSize is how many objects one side of a comparison evaluates before the other.
const pageSize = 100

// Source streams the evaluated objects in a scope, in order of group, resource, namespace and name. A missing
// named object is an *engine.UnreadableError, after which the rest follows; an unsupported field selector is
// an error that ends the stream.
func (s *Snapshot) Source(scope engine.Scope) engine.Source { return source{s, scope} }

type source struct {
	*Snapshot
	scope engine.Scope
}

// Pages implements engine.Source.
func (s source) Pages(ctx context.Context, selections []engine.Selection) iter.Seq2[engine.Page, error] {
	return func(yield func(engine.Page, error) bool) {
		joined, err := engine.NewObjectFilter(selections, s.scope)
		if err == nil {
			err = answerable(s.scope.Fields)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		for _, err := range s.missing() {
			if !yield(nil, err) {
				return
			}
		}
		for chunk := range slices.Chunk(s.entriesFor(joined), pageSize) {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			if !yield(page{s, chunk}, nil) {
				return
			}
		}
	}
}

func answerable(selector fields.Selector) error {
	if selector == nil {
		return nil
	}
	for _, r := range selector.Requirements() {
		if r.Field != "metadata.name" && r.Field != "metadata.namespace" {
			return fmt.Errorf("field selector %q needs a cluster: manifests can be selected by metadata.name and metadata.namespace", r.Field)
		}
	}
	return nil
}

// missing reports the named objects that are not evaluated.
func (s source) missing() []error {
	var out []error
	for _, key := range s.scope.Only {
		found := slices.ContainsFunc(s.entries, func(e *entry) bool {
			inside := s.scope.In(e.key.Namespace)
			if key.Namespace != "" {
				inside = e.key.Namespace == "" || e.key.Namespace == key.Namespace
			}
			return e.evaluated && e.key.GroupKind == key.GroupKind && e.key.Name == key.Name && inside
		})
		if key.Name == "" || found {
			continue
		}
		resource := schema.GroupResource{Group: key.Group, Resource: key.Kind}
		if mapping, err := s.mapper.RESTMapping(key.GroupKind); err == nil {
			resource = mapping.Resource.GroupResource()
		}
		out = append(out, &engine.UnreadableError{
			What: resource.String() + "/" + key.Name, Err: apierrors.NewNotFound(resource, key.Name),
		})
	}
	return out
}

func (s source) entriesFor(joined *engine.ObjectFilter) []*entry {
	kinds := map[schema.GroupVersionKind]*engine.KindFilter{}
	var out []*entry
	for _, e := range s.entries {
		gvk := e.mapping.GroupVersionKind
		k, ok := kinds[gvk]
		if !ok {
			if k, ok = joined.ForKind(e.mapping); !ok {
				k = nil
			}
			kinds[gvk] = k
		}
		if k != nil && e.evaluated && k.Matches(e.unpackedHead(&s.texts)) && s.selected(e) {
			out = append(out, e)
		}
	}
	return out
}

func (s source) selected(e *entry) bool {
	return s.scope.Fields == nil || s.scope.Fields.Matches(e.fields())
}

// fields returns the fields that can select an object.
func (e *entry) fields() fields.Set {
	return fields.Set{"metadata.name": e.key.Name, "metadata.namespace": e.key.Namespace}
}

type page struct {
	source  source
	entries []*entry
}

// Len implements engine.Page.
func (p page) Len() int { return len(p.entries) }

// Target implements engine.Page.
func (p page) Target(i int) (engine.Target, error) {
	e := p.entries[i]
	written := e.object(&p.source.texts)
	object := e.decoded
	if object == nil {
		object = p.source.decode(written)
	}
	t := engine.Target{
		Key: e.key, Object: object, Written: written, Origin: e.origin, OldObject: object,
		Mapping: e.mapping, Request: p.source.scope.Request,
	}
	if t.Request.Operation == engine.OperationCreate {
		t.OldObject = nil
	}
	t.Namespace = p.source.namespace(e.key.Namespace)
	return t, nil
}

// namespace returns the Namespace of a name; nil if there is none.
func (s *Snapshot) namespace(name string) *unstructured.Unstructured {
	if found := s.find(engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "Namespace"}, Name: name}); found != nil && name != "" {
		return s.decoded(found)
	}
	return nil
}
