package variant

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// maxReductions bounds the objects that are tried to reduce one.
const maxReductions = 400

// Reduce returns the smallest variant that it finds, of which still holds what is so of the given one. It leaves out
// one object beside it, field or element after the other, also of its Namespace, as long as all stays valid.
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
		fewer, _ := v.after(removed(i))
		try(fewer)
	}
	for again := true; again; {
		again = false
		for i := itsNamespace; i < len(v.Beside); i++ {
			again = reduced(&v, i, try) || again
		}
	}
	return v
}

// reduced tries what is left of a variant without each part of the object that Variant.at returns, and reports whether it could do without one.
func reduced(v *Variant, beside int, try func(Variant) bool) bool {
	again, u := false, v.at(beside)
	if u == nil {
		return false
	}
	for _, way := range ways(u.Object, nil) {
		one, changed := v.after(changing(beside, func(u *unstructured.Unstructured) bool {
			_, found := without(u.Object, way)
			return found
		}))
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

// without removes what a path leads to from a value, and returns what is left and whether there was anything.
func without(v any, way []any) (any, bool) {
	last := len(way) == 1
	switch v := v.(type) {
	case map[string]any:
		name, _ := way[0].(string)
		below, ok := v[name]
		if last {
			delete(v, name)
		} else if ok {
			v[name], ok = without(below, way[1:])
		}
		return v, ok
	case []any:
		i, ok := way[0].(int)
		switch {
		case !ok || i >= len(v):
			return v, false
		case last:
			return slices.Delete(v, i, i+1), true
		}
		v[i], ok = without(v[i], way[1:])
		return v, ok
	}
	return v, false
}
