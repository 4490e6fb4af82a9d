package legacy

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// Overlay is a compiled overlay: immutable and safe for concurrent use.
type Overlay struct{ root *node }

// node is a value of an overlay.
type node struct {
	kind   kind
	value  any // as it is written
	anchor pattern.Anchor
	name   string // of the field that it is the value of; empty in a list

	fields   []*node // of a map, by key
	elements []*node // of a list

	// pattern is that of a condition that only compares; then there is nothing below
	// the node.
	pattern    *pattern.Pattern
	conditions bool // has a () itself or below it
	scalars    bool // a map with values other than maps, lists and +()
	content    any  // of a map without conditions: the value without +() and null
}

type kind byte

const (
	isNull kind = iota
	isScalar
	isMap
	isList
)

func kindOf(v any) kind {
	switch v.(type) {
	case nil:
		return isNull
	case map[string]any:
		return isMap
	case []any:
		return isList
	}
	return isScalar
}

// CompileOverlay reads an overlay. The error is an *AnchorError, or a *limit.Error when
// it nests too deep.
func CompileOverlay(overlay map[string]any) (*Overlay, error) {
	root, err := compile(overlay, "", 0)
	if err != nil {
		return nil, err
	}
	return &Overlay{root: root}, nil
}

func compile(value any, at string, depth int) (*node, error) {
	if most := engine.DefaultLimits().Depth; depth > most {
		return nil, &limit.Error{What: "levels of nesting in an overlay", Max: most}
	}
	n := &node{kind: kindOf(value), value: value}
	switch v := value.(type) {
	case map[string]any:
		return n, n.compileMap(v, at, depth)
	case []any:
		for i, element := range v {
			child, err := compile(element, fmt.Sprintf("%s[%d]", at, i), depth+1)
			if err != nil {
				return nil, err
			}
			n.elements = append(n.elements, child)
			n.conditions = n.conditions || child.conditions
		}
	}
	return n, nil
}

func (n *node) compileMap(m map[string]any, at string, depth int) error {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		anchor, name := pattern.ParseKey(key)
		child := &node{kind: kindOf(m[key]), value: m[key]}
		switch {
		case anchor != pattern.None && anchor != pattern.Add && anchor != pattern.Condition:
			return &AnchorError{Path: join(at, name), Anchor: anchor.String()}
		case anchor == pattern.Condition && !pattern.Has(m[key], pattern.Add): // or it asks only that the key be there
			child.pattern = pattern.Compile(asText(m[key]))
		default:
			var err error
			if child, err = compile(m[key], join(at, name), depth+1); err != nil {
				return err
			}
		}
		child.anchor, child.name = anchor, name
		n.fields = append(n.fields, child)
		n.conditions = n.conditions || anchor == pattern.Condition || child.conditions
		n.scalars = n.scalars || child.kind == isScalar && anchor != pattern.Add
	}
	if !n.conditions && n.scalars {
		n.content = withoutAdds(m)
	}
	return nil
}

// withoutAdds returns a value without its add anchors and without keys that are null.
func withoutAdds(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, child := range v {
			if !isAdd(key) && child != nil {
				out[key] = withoutAdds(child)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, element := range v {
			out[i] = withoutAdds(element)
		}
		return out
	}
	return value
}

func isAdd(key string) bool {
	anchor, _ := pattern.ParseKey(key)
	return anchor == pattern.Add
}

// onlyConditions reports whether nothing is left of a value to write where nothing
// is there: it holds conditions, and no field beside them.
func (n *node) onlyConditions() bool {
	return n.kind == isMap && len(n.fields) > 0 &&
		!slices.ContainsFunc(n.fields, func(f *node) bool { return f.anchor != pattern.Condition })
}

// Apply writes the overlay to an object, which stays as it is. The result is the very
// map that was given where nothing changed; then why, which may be nil, holds what kept
// each part of the overlay from being written that the object does not hold already.
//
// The error is a *strategicmerge.ConditionError when the overlay does not apply to this
// object, a *KindError when it cannot be written, and that of the clock.
func (o *Overlay) Apply(c *limit.Clock, live map[string]any, why *engine.Reasons) (map[string]any, error) {
	w := &writer{why: why, clock: c}
	if err := w.check(o.root, live, ""); err != nil {
		return live, err
	}
	out, err := w.mergeMap(live, o.root, "")
	if err != nil {
		return live, err
	}
	return out, nil
}

// writer writes one overlay. It looks at the clock, since elements of an overlay that are merged into what others have
// added multiply.
type writer struct {
	clock *limit.Clock
	why   *engine.Reasons
}

// join returns the path of a field.
func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}
