package apply

import (
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// sameFields reports whether two changes touch the same fields.
func sameFields(a, b diff.Partial) bool {
	return slices.EqualFunc(a.Fields, b.Fields, func(x, y engine.FieldChange) bool {
		return x.Kind == y.Kind && x.Path.Equals(y.Path)
	})
}
