package variant

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// maxReductions bounds the objects that are tried to reduce one.
const maxReductions = 400

// Reduce returns the smallest variant that it finds, of which still holds what is so of the given one. It leaves out
// one object beside it, field or element after the other, as long as all stays valid, and labels of its
// Namespace.
func (g *Generator) Reduce(ctx context.Context, v Variant, holds func(Variant) bool) Variant {
	left := maxReductions
	try := func(smaller Variant) bool {
		if left--; left < 0 || ctx.Err() != nil || !g.valid(ctx, smaller) || !holds(smaller) {
			return false
		}
		v = smaller
		return true
	}
	for i := len(v.Beside) - 1; i >= 0; i-- {
		fewer, _ := removed(i)(v)
		try(fewer)
	}
	for again := true; again; {
		again = false
		for i := -1; i < len(v.Beside); i++ {
			again = reduced(&v, i, try) || again
		}
	}
	if v.Namespace == nil {
		return v
	}
	for _, field := range []string{labels, "annotations"} {
		entries, _, _ := unstructured.NestedStringMap(v.Namespace.Object, "metadata", field)
		for _, key := range sortedKeys(entries) {
			if key != corev1.LabelMetadataName {
				fewer := v
				fewer.Namespace = v.Namespace.DeepCopy()
				unstructured.RemoveNestedField(fewer.Namespace.Object, "metadata", field, key)
				try(fewer)
			}
		}
	}
	return v
}

// reduced tries what is left of a variant without each part of an object, the one with an index beside it or its own for
// -1, and reports whether it could do without one.
func reduced(v *Variant, beside int, try func(Variant) bool) bool {
	again := false
	u := v.Object
	if beside >= 0 {
		u = v.Beside[beside]
	}
	for _, way := range ways(u.Object, nil) {
		one, changed := changing(beside, func(u *unstructured.Unstructured) bool {
			smaller, removed := without(u.Object, way)
			u.Object, _ = smaller.(map[string]any)
			return removed
		})(*v)
		again = !identifies(way) && changed && try(one) || again
	}
	return again
}

// identifies reports whether a path leads to what identifies an object.
func identifies(way []any) bool {
	switch way[0] {
	case "apiVersion", "kind":
		return true
	case "spec":
		return len(way) == 1
	case "metadata":
		return len(way) == 1 || way[1] == "name" || way[1] == "namespace"
	}
	return false
}

// ways are the paths to all that a value holds, what is above before what is below. An element of a list is
// named by its index.
func ways(v any, way []any) [][]any {
	var out [][]any
	visit := func(step, below any) {
		next := append(slices.Clip(way), step)
		out = append(append(out, next), ways(below, next)...)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range sortedKeys(v) {
			visit(name, v[name])
		}
	case []any:
		for i, item := range slices.Backward(v) {
			visit(i, item)
		}
	}
	return out
}

// without returns a value without what a path leads to, and whether there was anything. What it was given
// is not modified.
func without(v any, way []any) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		name, _ := way[0].(string)
		below, ok := v[name]
		out := maps.Clone(v)
		if len(way) == 1 {
			delete(out, name)
		} else if ok {
			out[name], ok = without(below, way[1:])
		}
		return out, ok
	case []any:
		i, ok := way[0].(int)
		if !ok || i >= len(v) {
			return v, false
		}
		out := slices.Clone(v)
		if len(way) == 1 {
			return slices.Delete(out, i, i+1), true
		}
		out[i], ok = without(v[i], way[1:])
		return out, ok
	}
	return v, false
}
