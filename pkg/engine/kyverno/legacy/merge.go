package legacy

import (
	"maps"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
)

// merge writes an overlay's value over what is there, of whatever type. A null
// writes nothing, since overlays do not delete.
func (w *writer) merge(live any, patch *node, at string) (any, error) {
	if err := w.clock.Step(); err != nil {
		return nil, err
	}
	list, isAList := live.([]any)
	object, isAMap := live.(map[string]any)
	switch patch.kind {
	case isNull:
		return live, nil
	case isMap:
		switch {
		case isAMap:
			return w.mergeMap(object, patch, at)
		case isAList && holdsMaps(list):
			return w.mergeList(list, []*node{patch}, listAt{at, true})
		}
	case isList:
		if isAList {
			return w.mergeList(list, patch.elements, listAt{at, false})
		}
	case isScalar:
		if live != nil && diff.Equal(live, patch.value, diff.Type{}) {
			return live, nil // the same number, perhaps of another type
		}
	}
	return w.content(patch)
}

// mergeMap writes the fields of an overlay whose conditions hold.
func (w *writer) mergeMap(live map[string]any, patch *node, at string) (map[string]any, error) {
	out := live
	for _, field := range patch.fields {
		old, present := live[field.name]
		switch {
		case field.pattern != nil, !present && (field.kind == isNull || field.onlyConditions()):
			continue
		case present && field.anchor == pattern.Add:
			if w.why != nil && !diff.Equal(old, field.value, diff.Type{}) {
				w.why.Add("%s is there already (%s): +() only adds", join(at, field.name), engine.BriefValue(old))
			}
			continue
		case field.kind == isNull:
			w.why.Add("%s stays: an overlay does not delete", join(at, field.name))
			continue
		}
		merged, err := w.merge(old, field, join(at, field.name))
		if err != nil {
			return nil, err
		}
		if present && engine.Identical(old, merged) {
			continue
		}
		if out == nil || engine.Identical(out, live) {
			out = clone(live)
		}
		out[field.name] = merged
	}
	return out, nil
}

// content is an overlay's value where nothing is there yet: without anchors and
// nulls.
func (w *writer) content(patch *node) (any, error) {
	if err := w.clock.Step(); err != nil {
		return nil, err
	}
	switch patch.kind {
	case isMap:
		return w.mergeMap(map[string]any{}, patch, "")
	case isList:
		return w.appendNew(make([]any, 0, len(patch.elements)), patch.elements)
	default:
		return patch.value, nil
	}
}

func (w *writer) appendNew(list []any, items []*node) ([]any, error) {
	for _, item := range items {
		if item.kind == isNull || item.onlyConditions() {
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

func clone(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return maps.Clone(m)
}
