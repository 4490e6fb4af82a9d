package variant

import (
	"context"
	"slices"
)

// maxReductions bounds the attempts to reduce an object.
const maxReductions = 400

// Reduce returns the smallest variant found for which holds is still true. It removes one companion, field or
// element after the other, also from its Namespace, as long as everything stays valid.
func (g *Generator) Reduce(ctx context.Context, v Variant, holds func(Variant) bool) Variant {
	left := maxReductions
	still := func(smaller Variant) bool {
		left--
		return left >= 0 && ctx.Err() == nil && g.valid(ctx, smaller) && holds(smaller)
	}
	for i := len(v.Beside) - 1; i >= 0; i-- {
		if fewer, _ := v.after(removed(i)); still(fewer) {
			v = fewer
		}
	}
	copied := func() Variant { u, _ := v.after(func(*Variant) bool { return true }); return u }
	v = copied() // modified in place
	for again := true; again; {
		again = false
		for i := itsNamespace; i < len(v.Beside); i++ {
			if u := v.object(i); u != nil {
				again = reduced(u.Object, nil, func() bool { return still(copied()) }) || again
			}
		}
	}
	return v
}

// reduced removes each dispensable field and list element, parents before children, and reports whether it
// removed any.
func reduced(value any, way []string, still func() bool) bool {
	again := false
	fields, _ := value.(map[string]any)
	for _, name := range sortedKeys(fields) {
		way, below := append(slices.Clip(way), name), fields[name]
		if !identifies(way) {
			if delete(fields, name); still() {
				again = true
				continue
			}
			fields[name] = below
		}
		again = reduced(below, way, still) || again
		list, _ := below.([]any)
		for i, item := range slices.Backward(list) {
			fields[name] = slices.Delete(slices.Clone(list), i, i+1)
			if still() {
				list, again = fields[name].([]any), true // it was just written
				continue
			}
			fields[name] = list
			again = reduced(item, way, still) || again
		}
	}
	return again
}

func identifies(way []string) bool {
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
