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
	open    sync.Map // of kinds of which nothing is known, by schema.GroupVersionKind
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

// openSchema is the schema of a kind of objects that no CustomResourceDefinition describes: its metadata is
// that of every object, and all else is as a server has it where a schema leaves it open.
func (s *schemas) openSchema(gvk schema.GroupVersionKind) (engine.Schema, error) {
	if known, ok := s.open.Load(gvk); ok {
		return known.(engine.Schema), nil
	}
	document, err := openapi.FromCustomResource(gvk, map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true})
	if err != nil {
		return engine.Schema{}, err
	}
	out := document.Schema(gvk)
	s.open.Store(gvk, out)
	return out, nil
}
