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
	found sync.Map // by the question
}

// KindFor implements meta.RESTMapper.
func (m *knownMapper) KindFor(r schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return known(m, r, func() (schema.GroupVersionKind, error) { return m.RESTMapper.KindFor(r) })
}

// KindsFor implements meta.RESTMapper.
func (m *knownMapper) KindsFor(r schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return known(m, [1]schema.GroupVersionResource{r}, func() ([]schema.GroupVersionKind, error) { return m.RESTMapper.KindsFor(r) })
}

// RESTMapping implements meta.RESTMapper.
func (m *knownMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	key := [2]string{gk.String(), strings.Join(versions, ",")}
	return known(m, key, func() (*meta.RESTMapping, error) { return m.RESTMapper.RESTMapping(gk, versions...) })
}

func known[T any](m *knownMapper, question any, find func() (T, error)) (T, error) {
	if answer, ok := m.found.Load(question); ok {
		return answer.(T), nil // it is what was put in
	}
	answer, err := find()
	if err == nil {
		m.found.Store(question, answer)
	}
	return answer, err
}
