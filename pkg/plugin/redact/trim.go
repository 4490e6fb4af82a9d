package redact

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Detail is how much is shown of an object.
type Detail int

// The details: each leaves out more, but nothing that a rule changed.
const (
	// Stored is the object without what the server counts for itself.
	Stored Detail = iota
	// Configured is also without the state that controllers keep.
	Configured
	// Readable is also without what says nothing to a person.
	Readable
)

// Trim returns an object in that detail, given which of its fields change. The
// object is not modified, and nil stays nil.
func Trim(u *unstructured.Unstructured, fields []engine.FieldChange, d Detail) *unstructured.Unstructured {
	leftOut := [...]struct {
		by   Detail // the first that does
		path []string
	}{
		{Stored, []string{"metadata", "managedFields"}},
		{Stored, []string{"metadata", "resourceVersion"}},
		{Stored, []string{"metadata", "generation"}},
		{Configured, []string{"status"}},
		{Readable, []string{"metadata", "uid"}},
		{Readable, []string{"metadata", "creationTimestamp"}},
		{Readable, []string{"metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"}},
	}
	for _, l := range leftOut {
		if d >= l.by && !touched(fields, l.path) {
			u = without(u, l.path)
		}
	}
	return u
}

// touched reports whether a rule changed something at, above or below a path.
func touched(fields []engine.FieldChange, path []string) bool {
	for i := range fields {
		if overlaps(&fields[i], path) {
			return true
		}
	}
	return false
}

// overlaps reports whether a field lies at, above or below a path.
func overlaps(f *engine.FieldChange, path []string) bool {
	for i := range min(len(f.Path), len(path)) {
		if f.Path[i].FieldName == nil || *f.Path[i].FieldName != path[i] {
			return false
		}
	}
	return len(f.Path) > 0
}

// without returns an object without a field, and without the maps that are empty then,
// except at the top level.
func without(u *unstructured.Unstructured, path []string) *unstructured.Unstructured {
	if u == nil {
		return nil
	}
	object, removed := withoutField(u.Object, path)
	if !removed {
		return u
	}
	return &unstructured.Unstructured{Object: object}
}

func withoutField(m map[string]any, path []string) (map[string]any, bool) {
	v, ok := m[path[0]]
	if !ok {
		return m, false
	}
	var rest map[string]any
	if len(path) > 1 {
		below, isMap := v.(map[string]any)
		if !isMap {
			return m, false
		}
		if rest, ok = withoutField(below, path[1:]); !ok {
			return m, false
		}
	}
	out := make(map[string]any, len(m))
	for k, v := range m {
		if k != path[0] {
			out[k] = v
		}
	}
	if len(rest) > 0 {
		out[path[0]] = rest
	}
	return out, true
}
