package pattern

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// joinPath returns the path of a field; only keys of metadata's labels and annotations may have wildcards.
func joinPath(at, field string) string {
	switch {
	case field == "metadata":
		return "metadata"
	case at == "metadata" && (field == "labels" || field == "annotations"):
		return "labels"
	}
	return ""
}

// match returns the first difference of a value from a pattern; nil if it matches.
func match(c *limit.Clock, pattern, value any, at string) *Difference {
	list, isList := value.([]any)
	switch p := pattern.(type) {
	case map[string]any:
		if object, isMap := value.(map[string]any); isMap {
			for _, k := range keysOf(p) {
				if d := k.match(c, object, at); d != nil {
					return d
				}
			}
			return nil
		}
	case []any:
		if isList && len(p) > 0 {
			return matchList(c, p, list)
		}
	default:
		if isList {
			return matchElements(c, list, func(_ int, element any) *Difference { return scalar(pattern, element) })
		}
		return scalar(pattern, value)
	}
	return &Difference{Want: pattern, Got: value}
}

func scalar(pattern, value any) *Difference {
	if holds(pattern, value) {
		return nil
	}
	return &Difference{Want: pattern, Got: value}
}

type key struct {
	anchor Anchor
	name   string // in objects
	want   any
	rank   int // order among the keys of its map
}

// keysOf lists the keys in checking order: conditions, other anchors, plain keys above anchors, plain keys.
func keysOf(pattern map[string]any) []key {
	keys := make([]key, 0, len(pattern))
	for _, written := range slices.Sorted(maps.Keys(pattern)) {
		k := key{want: pattern[written]}
		switch k.anchor, k.name = ParseKey(written); k.anchor {
		case Condition, Global:
			k.rank = 0
		case Equality, Negation, Existence:
			k.rank = 1
		default:
			if k.rank = 3; Has(k.want, Condition, Global, Equality, Negation, Existence) {
				k.rank = 2
			}
			if k.anchor == Add {
				k.name = written
			}
		}
		keys = append(keys, k)
	}
	slices.SortStableFunc(keys, func(a, b key) int { return cmp.Compare(a.rank, b.rank) })
	return keys
}

// match compares the object's value for the key. A failed condition leaves a list element out.
func (k *key) match(c *limit.Clock, object map[string]any, at string) *Difference {
	if c.Step() != nil {
		return &Difference{}
	}
	got, present := k.lookup(object, at)
	condition := k.anchor == Condition || k.anchor == Global
	switch {
	case k.anchor == Negation && present, k.anchor == Existence && present && !matchExistence(c, k.want, got):
		return &Difference{Path: k.name, Anchor: k.anchor, Want: k.want, Got: got}
	case k.anchor == Negation, k.anchor == Existence, !present && (k.anchor == Global || k.anchor == Equality):
		return nil
	case k.want == any("*") && got != nil && (k.anchor == None || k.anchor == Add):
		return nil
	}
	d := match(c, k.want, got, joinPath(at, k.name))
	switch {
	case !present && condition, d != nil && got == nil:
		return &Difference{Path: k.name, Want: k.want, Missing: true, leftOut: condition}
	case d == nil:
		return nil
	}
	d = d.in(k.name)
	d.leftOut = d.leftOut || condition
	return d
}

// lookup finds the key; in labels and annotations, a key with wildcards stands for its first match.
func (k *key) lookup(object map[string]any, at string) (any, bool) {
	if at == "labels" && selector.HasWildcard(k.name) {
		for _, actual := range slices.Sorted(maps.Keys(object)) {
			if selector.MatchWildcard(k.name, actual) {
				return object[actual], true
			}
		}
	}
	got, ok := object[k.name]
	return got, ok
}

// matchExistence requires a matching list element for each of the patterns, which must be maps.
func matchExistence(c *limit.Clock, pattern, value any) bool {
	patterns, ok := pattern.([]any)
	list, isList := value.([]any)
	return ok && isList && !slices.ContainsFunc(patterns, func(p any) bool {
		_, isMap := p.(map[string]any)
		return !isMap || !slices.ContainsFunc(list,
			func(element any) bool { return match(c, p, element, "") == nil })
	})
}

// matchList decides by the pattern's first element: a map must match every map, except for those with failing
// conditions; lists of lists match by index; a scalar must match every element.
func matchList(c *limit.Clock, pattern, list []any) *Difference {
	switch first := pattern[0].(type) {
	case map[string]any:
		return matchElements(c, list, func(_ int, element any) *Difference { return match(c, first, element, "") })
	case []any:
		if len(list) < len(pattern) {
			return &Difference{Want: pattern, Got: list}
		}
		return matchElements(c, list[:len(pattern)],
			func(i int, element any) *Difference { return match(c, pattern[i], element, "") })
	default:
		return matchElements(c, list, func(_ int, element any) *Difference { return scalar(first, element) })
	}
}

// matchElements fails on the first element that does not match. If all elements are left out, so is the list,
// with the first one's difference.
func matchElements(c *limit.Clock, list []any, match func(i int, element any) *Difference) *Difference {
	asked, first := len(list) == 0, (*Difference)(nil)
	for i, element := range list {
		d := match(i, element)
		switch {
		case c.Step() != nil:
			return &Difference{}
		case d == nil:
			asked = true
		case !d.leftOut:
			return d.in(fmt.Sprintf("[%d]", i))
		case first == nil:
			first = d.in(fmt.Sprintf("[%d]", i))
		}
	}
	if asked {
		return nil
	}
	return first
}
