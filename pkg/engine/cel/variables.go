package cel

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/lazy"
)

// variables are those of a policy, each evaluated when it is first used. The map of the library has to
// be told of all of them first, which takes time by their number for each mutation.
type variables struct {
	*lazy.MapValue // of those that were asked for
	activation     *activation
	asked          map[string]bool
}

var _ traits.Mapper = (*variables)(nil)

func newVariables(a *activation) *variables {
	return &variables{MapValue: lazy.NewMapValue(a.scope.environment.none), activation: a, asked: map[string]bool{}}
}

// ask prepares the map for a variable that is about to be read.
func (m *variables) ask(key ref.Val) {
	escaped, _ := key.(types.String)
	name, _ := apiservercel.Unescape(string(escaped))
	v := m.activation.scope.variable(name)
	if v == nil || v.expression == nil || m.asked[name] {
		return
	}
	m.asked[name] = true
	m.Append(name, func(*lazy.MapValue) ref.Val { return m.activation.variable(v) })
}

// Find implements traits.Mapper.
func (m *variables) Find(key ref.Val) (ref.Val, bool) {
	m.ask(key)
	return m.MapValue.Find(key)
}

// Get implements traits.Indexer.
func (m *variables) Get(key ref.Val) ref.Val {
	m.ask(key)
	return m.MapValue.Get(key)
}

// Iterator goes through all variables in their order.
func (m *variables) Iterator() traits.Iterator {
	all := lazy.NewMapValue(m.activation.scope.environment.none)
	for _, v := range m.activation.scope.variables {
		all.Append(v.name, func(*lazy.MapValue) ref.Val { return m.Get(types.String(v.name)) })
	}
	return all.Iterator()
}

// Equal reports whether it is the same map.
func (m *variables) Equal(other ref.Val) ref.Val {
	if o, ok := other.(*variables); ok {
		return types.Bool(m == o)
	}
	return m.MapValue.Equal(other)
}
