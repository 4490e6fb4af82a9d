package touched

import (
	"maps"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Leaves are the fields of a change with added and removed maps taken apart, so
// that what somebody else puts beside a value is none of the change. An empty map
// is a leaf.
func (t Touched) Leaves() []Field {
	var out []Field
	for _, f := range t.Fields {
		from, to := t.Values(f)
		switch f.Kind {
		case engine.Added:
			out = appendLeaves(out, f, to)
		case engine.Removed:
			out = appendLeaves(out, f, from)
		default:
			out = append(out, f)
		}
	}
	return out
}

func appendLeaves(out []Field, f Field, content any) []Field {
	fields, _ := content.(map[string]any)
	// An element of a list comes and goes as one.
	if len(fields) == 0 || f.Withheld || f.Path[len(f.Path)-1].FieldName == nil {
		return append(out, f)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		part := f
		part.Path = append(slices.Clip(f.Path), fieldpath.PathElement{FieldName: &name})
		out = appendLeaves(out, part, fields[name])
	}
	return out
}
