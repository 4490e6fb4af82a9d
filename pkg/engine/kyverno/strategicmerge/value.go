package strategicmerge

import (
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
)

// kind is what a value is to a merge.
type kind byte

const (
	isNull kind = iota
	isScalar
	isMap
	isList
)

// String is how messages call it.
func (k kind) String() string {
	return [...]string{"null", "value", "map", "list"}[k]
}

func kindOf(v any) kind {
	switch v.(type) {
	case nil:
		return isNull
	case map[string]any:
		return isMap
	case []any:
		return isList
	default:
		return isScalar
	}
}

// asText returns the text of a scalar, and any other value itself.
func asText(v any) any {
	if s, ok := pattern.Text(v); ok {
		return s
	}
	return v
}

// contains reports whether a list holds a value; not if there is no time left to compare it with each item.
func (m *merger) contains(list []any, v any) bool {
	return m.steps(len(list)) && slices.ContainsFunc(list, func(e any) bool { return diff.Same(e, v) })
}
