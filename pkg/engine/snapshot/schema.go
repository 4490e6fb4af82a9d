package snapshot

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/openapi"
)

// schemas makes each schema when it is first asked for: the built-in types alone
// take 0.2 seconds to read.
type schemas struct {
	builtin func() managedfields.TypeConverter
	custom  map[schema.GroupVersionKind]func() (*openapi.Document, error)
}

func newSchemas(definitions []definition) *schemas {
	s := &schemas{
		builtin: sync.OnceValue(func() managedfields.TypeConverter {
			return applyconfigurations.NewTypeConverter(scheme.Scheme)
		}),
		custom: map[schema.GroupVersionKind]func() (*openapi.Document, error){},
	}
	for _, d := range definitions {
		if d.schema != nil {
			s.custom[d.kind] = sync.OnceValues(func() (*openapi.Document, error) {
				return openapi.FromCustomResource(d.kind, d.schema)
			})
		}
	}
	return s
}

func (s *schemas) schema(gvk schema.GroupVersionKind) (engine.Schema, error) {
	if read := s.custom[gvk]; read != nil {
		document, err := read()
		if err != nil {
			return engine.Schema{}, err
		}
		return document.Schema(gvk), nil
	}
	if !scheme.Scheme.Recognizes(gvk) {
		return engine.Schema{}, nil
	}
	object, err := scheme.Scheme.New(gvk)
	if err != nil {
		return engine.Schema{}, err
	}
	patch, err := strategicpatch.NewPatchMetaFromStruct(object)
	if err != nil {
		return engine.Schema{}, err
	}
	return engine.Schema{Types: s.builtin(), Patch: patch}, nil
}
