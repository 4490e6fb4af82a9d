package snapshot

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/openapi"
)

// schemas makes each schema when it is first asked for.
type schemas struct {
	builtin openapi.Builtin
	custom  map[schema.GroupVersionKind]func() (*openapi.Document, error)
}

func newSchemas(definitions []definition) *schemas {
	s := &schemas{custom: map[schema.GroupVersionKind]func() (*openapi.Document, error){}}
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
	read := s.custom[gvk]
	if read == nil {
		read = func() (*openapi.Document, error) { return s.builtin.Document(gvk) }
	}
	document, err := read()
	if document == nil || err != nil {
		return engine.Schema{}, err
	}
	return document.Schema(gvk), nil
}
