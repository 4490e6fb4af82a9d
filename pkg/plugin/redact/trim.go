package redact

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
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
	if u == nil {
		return nil
	}
	object := u.Object
	for _, l := range leftOut {
		if d >= l.by && !slices.ContainsFunc(fields, func(f engine.FieldChange) bool { return overlaps(&f, l.path) }) {
			object = without(object, l.path)
		}
	}
	return &unstructured.Unstructured{Object: object}
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

// without returns a map without a field, and without the maps below it that are empty then.
func without(m map[string]any, path []string) map[string]any {
	v, has := m[path[0]]
	if !has {
		return m
	}
	if len(path) > 1 {
		below, _ := v.(map[string]any)
		rest := without(below, path[1:])
		switch {
		case engine.Identical(rest, below):
			return m
		case len(rest) > 0:
			return diff.With(m, path[0], rest)
		}
	}
	return diff.Without(m, path[0])
}
