package legacy

import (
	"fmt"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// entry is a map that an overlay holds in the place of a list: it stands for each
// element, and is never a new one.
type entry map[string]any

// mergeList writes the elements of an overlay to a list. Each is judged by the
// elements as they were, and new items come last.
func (w *writer) mergeList(live, patch []any, at string) (any, error) {
	out := live
	var added []any
	for _, element := range patch {
		hits, isNew, err := w.targets(live, element, at)
		if err != nil {
			return nil, err
		}
		if isNew {
			added = append(added, element)
		}
		for _, i := range hits {
			object, _ := live[i].(map[string]any)
			if patched, ok := out[i].(map[string]any); ok {
				object = patched // by an element of the overlay before this one
			}
			merged, err := w.mergeMap(object, mapOf(element), fmt.Sprintf("%s[%d]", at, i))
			if err != nil {
				return nil, err
			}
			if same(out[i], merged) {
				continue
			}
			if same(out, live) {
				out = slices.Clone(live)
			}
			out[i] = merged
		}
	}
	return w.appendMissing(out, added)
}

// targets are the live elements that an element of an overlay is merged into, or
// else whether it is a new item.
func (w *writer) targets(live []any, element any, at string) (hits []int, isNew bool, err error) {
	patch := mapOf(element)
	if len(live) > 0 && element != nil && (patch != nil) != holdsMaps(live) {
		return nil, false, &KindError{Path: at}
	}
	if patch == nil {
		return nil, element != nil, nil
	}
	_, isEntry := element.(entry)
	selects := isEntry || hasConditions(patch)
	each := selects || !hasScalars(patch)
	for i := range live {
		object, ok := live[i].(map[string]any)
		if !ok {
			continue
		}
		takes := each
		if each {
			if err := w.check(patch, object, at); err != nil {
				if !isCondition(err) {
					return nil, false, err
				}
				takes = false
			}
		} else if takes, err = w.holds(object, patch); err != nil {
			return nil, false, err
		}
		if takes {
			hits = append(hits, i)
		}
	}
	isNew = len(hits) == 0 && !selects && (!each || len(live) == 0)
	return hits, isNew, nil
}

// appendMissing adds new items, those aside that are there by now.
func (w *writer) appendMissing(list, items []any) (any, error) {
	for _, item := range items {
		contents, err := w.appendNew(nil, []any{item})
		if err != nil {
			return nil, err
		}
		for _, content := range contents {
			known := false
			for _, old := range list {
				if known, err = w.holds(old, content); err != nil || known {
					break
				}
			}
			if err != nil {
				return nil, err
			}
			if !known {
				list = append(list[:len(list):len(list)], content)
			}
		}
	}
	return list, nil
}

// holds tells whether a live value has all that an overlay says, add anchors and
// nulls aside. A server adds defaults to an item, which is no other item for that.
func (w *writer) holds(live, patch any) (bool, error) {
	if err := w.step(); err != nil {
		return false, err
	}
	switch p := patch.(type) {
	case nil:
		return true, nil
	case map[string]any:
		object, ok := live.(map[string]any)
		if !ok {
			return false, nil
		}
		for _, key := range sortedKeys(p) {
			if isAdd(key) || p[key] == nil {
				continue
			}
			if held, err := w.holds(object[key], p[key]); !held || err != nil {
				return false, err
			}
		}
		return true, nil
	case []any:
		return w.holdsAll(live, p)
	default:
		return diff.Equal(live, patch, diff.Type{}), nil
	}
}

func (w *writer) holdsAll(live any, items []any) (bool, error) {
	list, ok := live.([]any)
	if !ok {
		return false, nil
	}
	for _, item := range items {
		found := false
		for _, element := range list {
			var err error
			if found, err = w.holds(element, item); err != nil {
				return false, err
			}
			if found {
				break
			}
		}
		if !found {
			return false, nil
		}
	}
	return true, nil
}
