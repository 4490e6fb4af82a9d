package impact

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// A place is a path as engine.PathPattern writes it, without the keys of list elements: "spec.containers[*].image".

// isWithin reports whether a place is another one, or below it.
func isWithin(p, q string) bool {
	below, ok := strings.CutPrefix(p, q)
	return ok && (below == "" || below[0] == '.' || below[0] == '[')
}

// meet reports whether one of two places is the other, or holds it.
func meet(p, q string) bool { return isWithin(p, q) || isWithin(q, p) }

// meetsAny reports whether a path meets any of several places.
func meetsAny(all []string, p fieldpath.Path) bool {
	return slices.ContainsFunc(all, func(q string) bool { return meet(engine.PathPattern(p), q) })
}

// touching are the paths of the changed fields that meet a place.
func touching(c *engine.Change, p string) []fieldpath.Path {
	var out []fieldpath.Path
	for i := range c.Fields {
		if meet(engine.PathPattern(c.Fields[i].Path), p) {
			out = append(out, c.Fields[i].Path)
		}
	}
	return out
}

// within are the paths of the changed fields that are in a place.
func within(c *engine.Change, p string) []fieldpath.Path {
	return slices.DeleteFunc(touching(c, p), func(changed fieldpath.Path) bool { return !isWithin(engine.PathPattern(changed), p) })
}

// patterns lists paths for a text about several objects: "spec.containers[*].env[*]".
func patterns(paths []fieldpath.Path) string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = engine.PathPattern(p)
	}
	slices.Sort(out)
	return engine.Few(slices.Compact(out))
}

// names lists paths for a text: "spec.replicas, spec.paused and 2 more".
func names(paths []fieldpath.Path) string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = engine.PathString(p)
	}
	return engine.Few(out)
}

// valueAt walks down maps; nil where there is nothing.
func valueAt(object map[string]any, names ...string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(object, names...) // what is no map has no fields
	return v
}

// textOf is a value that is a text, and empty for any other.
func textOf(v any) string {
	s, _ := v.(string)
	return s
}

// boolOf is a value that is true or false, and false for any other.
func boolOf(v any) bool {
	b, _ := v.(bool)
	return b
}

// numberOf is a value that is a count; fallback stands where there is none.
func numberOf(v any, fallback int64) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return fallback
}
