package legacy

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// listAt is where a list is.
type listAt struct {
	path string
	// each is set where the overlay holds a map in the place of the list: it stands for
	// each element, and is never a new one.
	each bool
}

// mergeList writes the elements of an overlay to a list. Each is judged by the
// elements as they were, and new items come last.
func (w *writer) mergeList(live []any, patch []*node, at listAt) (any, error) {
	out := live
	var added []*node
	for _, element := range patch {
		hits, isNew, err := w.targets(live, element, at)
		switch {
		case err != nil:
			return nil, err
		case isNew:
			added = append(added, element)
		case len(hits) == 0 && element.kind != isNull:
			w.why.Add("no element of %s matches the overlay", at.path)
		}
		for _, i := range hits {
			object, _ := live[i].(map[string]any)
			if patched, ok := out[i].(map[string]any); ok {
				object = patched // by an element of the overlay before this one
			}
			merged, err := w.mergeMap(object, element, fmt.Sprintf("%s[%d]", at.path, i))
			if err != nil {
				return nil, err
			}
			if engine.Identical(out[i], merged) {
				continue
			}
			if engine.Identical(out, live) {
				out = slices.Clone(live)
			}
			out[i] = merged
		}
	}
	return w.appendMissing(out, added)
}

// targets returns the live elements that an element of an overlay is merged into, or
// else whether it is a new item.
func (w *writer) targets(live []any, element *node, at listAt) (hits []int, isNew bool, err error) {
	if len(live) > 0 && element.kind != isNull && (element.kind == isMap) != holdsMaps(live) {
		return nil, false, &KindError{Path: at.path}
	}
	if element.kind != isMap {
		return nil, element.kind != isNull, nil
	}
	selects := at.each || element.conditions
	each := selects || !element.scalars
	for i := range live {
		object, ok := live[i].(map[string]any)
		if !ok {
			continue
		}
		takes := each
		if each {
			if err := w.check(element, object, at.path); err != nil {
				if !isCondition(err) {
					return nil, false, err
				}
				takes = false
			}
		} else if takes, err = w.holds(object, element.content); err != nil {
			return nil, false, err
		}
		if takes {
			hits = append(hits, i)
		}
	}
	isNew = len(hits) == 0 && !selects && (!each || len(live) == 0)
	return hits, isNew, nil
}

// appendMissing adds new items, except for those that are there by now.
func (w *writer) appendMissing(list []any, items []*node) (any, error) {
	contents, err := w.appendNew(nil, items)
	if err != nil {
		return nil, err
	}
	list = slices.Clip(list) // so that adding to it does not write to what was given
	for _, content := range contents {
		known := false
		for _, old := range list {
			if known, err = w.holds(old, content); err != nil {
				return nil, err
			}
			if known {
				break
			}
		}
		if !known {
			list = append(list, content)
		}
	}
	return list, nil
}

// holds reports whether a live value has all that another one has. A server adds
// defaults to an item, which is no other item for that. Null asks for nothing.
func (w *writer) holds(live, content any) (bool, error) {
	if err := w.clock.Step(); err != nil {
		return false, err
	}
	switch c := content.(type) {
	case nil:
		return true, nil
	case map[string]any:
		object, ok := live.(map[string]any)
		if !ok {
			return false, nil
		}
		for _, key := range slices.Sorted(maps.Keys(c)) {
			if held, err := w.holds(object[key], c[key]); !held || err != nil {
				return false, err
			}
		}
		return true, nil
	case []any:
		return w.holdsAll(live, c)
	default:
		return diff.Equal(live, content, diff.Type{}), nil
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
