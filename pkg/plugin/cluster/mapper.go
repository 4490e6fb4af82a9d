package cluster

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"
)

// knownMapper keeps what a mapper has found: kubectl's goes through all of discovery for each answer, and a
// run asks for each object. There are no more answers than the server has resources.
type knownMapper struct {
	meta.RESTMapper
	restmapper.CategoryExpander
	kinds    sync.Map // schema.GroupVersionKind by schema.GroupVersionResource
	mappings sync.Map // *meta.RESTMapping by mappingKey
}

type mappingKey struct {
	schema.GroupKind
	versions string
}

// KindFor implements meta.RESTMapper.
func (m *knownMapper) KindFor(r schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	if known, ok := m.kinds.Load(r); ok {
		return known.(schema.GroupVersionKind), nil // it is what was put in
	}
	kind, err := m.RESTMapper.KindFor(r)
	if err == nil {
		m.kinds.Store(r, kind)
	}
	return kind, err
}

// RESTMapping implements meta.RESTMapper.
func (m *knownMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	key := mappingKey{gk, strings.Join(versions, ",")}
	if known, ok := m.mappings.Load(key); ok {
		return known.(*meta.RESTMapping), nil // it is what was put in
	}
	mapping, err := m.RESTMapper.RESTMapping(gk, versions...)
	if err == nil {
		m.mappings.Store(key, mapping)
	}
	return mapping, err
}
