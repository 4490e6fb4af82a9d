package legacy

import (
	"fmt"
	"maps"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
)

// maxSteps bounds the values that one overlay looks at and writes: elements of
// it that are merged into what others have added could multiply without end.
const maxSteps = 1_000_000

// ApplyOverlay writes an overlay to an object; neither is modified. The result is
// the very map that it was given where nothing changed.
//
// The error is an *overlay.ConditionError when the overlay does not apply to this
// object, an *AnchorError or a *KindError when it cannot be written, and a
// *LimitError when it nests too deep or would write too much.
func ApplyOverlay(live, patch map[string]any) (map[string]any, error) {
	if err := Validate(patch); err != nil {
		return live, err
	}
	w := &writer{}
	if err := w.check(patch, live, ""); err != nil {
		return live, err
	}
	out, err := w.mergeMap(live, patch, "")
	if err != nil {
		return live, err
	}
	return out, nil
}

// writer writes one overlay.
type writer struct{ steps int }

// step counts one value; the error is a *LimitError.
func (w *writer) step() error {
	if w.steps++; w.steps > maxSteps {
		return &LimitError{What: "values written or compared", Max: maxSteps}
	}
	return nil
}

// merge writes an overlay's value over what is there, of whatever type. A null
// says nothing, since overlays do not delete.
func (w *writer) merge(live, patch any, at string) (any, error) {
	if err := w.step(); err != nil {
		return nil, err
	}
	list, isList := live.([]any)
	object, isMap := live.(map[string]any)
	switch p := patch.(type) {
	case nil:
		return live, nil
	case map[string]any:
		switch {
		case isMap:
			return w.mergeMap(object, p, at)
		case isList && holdsMaps(list):
			return w.mergeList(list, []any{entry(p)}, at)
		}
	case []any:
		if isList {
			return w.mergeList(list, p, at)
		}
	default:
		if live != nil && diff.Equal(live, patch, diff.Type{}) {
			return live, nil // the same number, perhaps of another type
		}
	}
	return w.content(patch)
}

// mergeMap writes the fields of an overlay whose conditions hold.
func (w *writer) mergeMap(live, patch map[string]any, at string) (map[string]any, error) {
	out := live
	for _, key := range sortedKeys(patch) {
		anchor, plain := pattern.ParseKey(key)
		old, present := live[plain]
		value := patch[key]
		switch {
		case anchor == pattern.Condition && !writes(value), anchor == pattern.Add && present, value == nil:
			continue
		case !present && onlyConditions(value):
			continue
		}
		merged, err := w.merge(old, value, join(at, plain))
		if err != nil {
			return nil, err
		}
		if present && same(old, merged) {
			continue
		}
		if out == nil || same(out, live) {
			out = clone(live)
		}
		out[plain] = merged
	}
	return out, nil
}

// content is an overlay's value where nothing is there yet: without anchors and
// nulls.
func (w *writer) content(patch any) (any, error) {
	if err := w.step(); err != nil {
		return nil, err
	}
	switch p := patch.(type) {
	case entry:
		return w.content(map[string]any(p))
	case map[string]any:
		return w.mergeMap(map[string]any{}, p, "")
	case []any:
		return w.appendNew(make([]any, 0, len(p)), p)
	default:
		return patch, nil
	}
}

func (w *writer) appendNew(list, items []any) ([]any, error) {
	for _, item := range items {
		if item == nil || onlyConditions(item) {
			continue
		}
		content, err := w.content(item)
		if err != nil {
			return nil, err
		}
		list = append(list, content)
	}
	return list, nil
}

// join is the path of a field, as messages have it.
func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

func clone(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return maps.Clone(m)
}

// Validate finds what no object could be patched with.
func Validate(patch map[string]any) error { return validate(patch, "", 0) }

func validate(patch any, at string, depth int) error {
	if limit := engine.DefaultLimits().Depth; depth > limit {
		return &LimitError{What: "levels of nesting in an overlay", Max: limit}
	}
	switch p := patch.(type) {
	case map[string]any:
		for _, key := range sortedKeys(p) {
			anchor, plain := pattern.ParseKey(key)
			switch anchor {
			case pattern.Condition:
				if !writes(p[key]) {
					continue // the value is a pattern, which has a language of its own
				}
			case pattern.None, pattern.Add:
			default:
				return &AnchorError{Path: join(at, plain), Anchor: anchor.String()}
			}
			if err := validate(p[key], join(at, plain), depth+1); err != nil {
				return err
			}
		}
	case []any:
		for i, element := range p {
			if err := validate(element, fmt.Sprintf("%s[%d]", at, i), depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
