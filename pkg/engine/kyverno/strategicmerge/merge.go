package strategicmerge

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
)

const (
	directiveKey     = "$patch"
	directiveDelete  = "delete"
	directiveReplace = "replace"
	directiveMerge   = "merge"
)

// merger writes patches whose conditions hold. Several patches may meet in one
// list element; they are merged together, so that all of them are judged on the
// element as it was and the last one to set a field wins.
type merger struct {
	warnings []engine.Warning
}

func (m *merger) warn(format string, args ...any) {
	w := engine.Warning(fmt.Sprintf(format, args...))
	if !slices.Contains(m.warnings, w) {
		m.warnings = append(m.warnings, w)
	}
}

// mergeMap merges patches into a map, nil where there is none yet. The map that
// it was given is returned where nothing changed.
func (m *merger) mergeMap(live map[string]any, patches []map[string]any, at *place) (merged map[string]any, removed bool, err error) {
	patches, live, removed, err = m.directives(live, patches, at)
	if err != nil || removed {
		return nil, removed, err
	}
	values := fieldsToWrite(live, patches)
	merged = live
	for _, key := range sortedKeys(values) {
		old := live[key]
		value, drop, err := m.mergeValue(old, values[key], at.field(key))
		switch {
		case err != nil:
			return nil, false, err
		case drop && old != nil:
			merged = copyOnce(merged, live)
			delete(merged, key)
		case !drop && !diff.Same(old, value):
			merged = copyOnce(merged, live)
			merged[key] = value
		}
	}
	return merged, false, nil
}

// copyOnce copies the map unless it is a copy already.
func copyOnce(m, live map[string]any) map[string]any {
	if m != nil && (live == nil || !diff.Shared(m, live)) {
		return m
	}
	if m == nil {
		return map[string]any{}
	}
	return maps.Clone(m)
}

// directives obeys $patch: what was there before a delete or a replace, in the
// object or in earlier patches, no longer counts.
func (m *merger) directives(live map[string]any, patches []map[string]any, at *place) (rest []map[string]any, base map[string]any, removed bool, err error) {
	base = live
	for _, patch := range patches {
		directive := patch[directiveKey]
		if directive == directiveDelete {
			rest, base, removed = nil, nil, true
			continue
		}
		if directive != directiveReplace && !removed {
			rest = append(rest, patch)
			continue
		}
		written, err := m.contentMap(patch, at)
		if err != nil {
			return nil, nil, false, err
		}
		rest, base, removed = nil, written, false
	}
	return rest, base, removed, nil
}

// fieldsToWrite gathers, in the order of the patches, what they write to each
// field of a map.
func fieldsToWrite(live map[string]any, patches []map[string]any) map[string][]any {
	values := map[string][]any{}
	for _, patch := range patches {
		for _, key := range sortedKeys(patch) {
			anchor, plain := pattern.ParseKey(key)
			if _, present := live[plain]; anchor == pattern.Add && present || key == directiveKey {
				continue
			}
			if (anchor == pattern.Condition || anchor == pattern.Global) && !writes(patch[key]) {
				continue
			}
			values[plain] = append(values[plain], patch[key])
		}
	}
	return values
}

// mergeValue merges what patches write to one field. An empty map or list in a
// patch changes nothing. To drop a field that is missing, or null, changes
// nothing either; but a missing map in which the patch deletes fields becomes an
// empty one, as in kyaml, which takes over the patch's map and then deletes in it.
func (m *merger) mergeValue(live any, values []any, at *place) (value any, drop bool, err error) {
	values = slices.DeleteFunc(values, isEmpty)
	if len(values) == 0 {
		return live, live == nil, nil
	}
	last := kindOf(values[len(values)-1])
	for i := len(values) - 1; i >= 0; i-- {
		if kindOf(values[i]) != last { // what was written before is gone
			live, values = nil, values[i+1:]
			break
		}
	}
	if k := kindOf(live); last != isNull && k != isNull && k != last {
		return nil, false, &KindError{Path: at.String(), Patch: last.String(), Got: k.String()}
	}
	switch last {
	case isMap:
		old, _ := live.(map[string]any)
		merged, removed, err := m.mergeMap(old, asMaps(values), at)
		if merged == nil && slices.ContainsFunc(values, deletesFields) {
			merged = map[string]any{}
		}
		return merged, removed || merged == nil, err
	case isList:
		old, _ := live.([]any)
		return m.mergeList(old, values, at)
	case isNull:
		return nil, true, nil
	default:
		return m.scalar(values[len(values)-1], at), false, nil
	}
}

// scalar is a scalar as it is written: labels and annotations become strings.
func (m *merger) scalar(value any, at *place) any {
	if _, isText := value.(string); isText || !at.parent.isLabels() {
		return value
	}
	s, _ := text(value)
	m.warn("%s: %s is written as a string, since labels and annotations hold nothing else", at, s)
	return s
}

// content is a part of a patch that becomes part of the object as a whole:
// nulls and directives have nothing to act on, and conditions were judged.
// Unlike elsewhere in a patch, {} and [] say something here (`emptyDir: {}`).
func (m *merger) content(patch any, at *place) (any, error) {
	switch p := patch.(type) {
	case map[string]any:
		return m.contentMap(p, at)
	case []any:
		return m.contentList(p, at)
	default:
		return m.scalar(p, at), nil
	}
}

func (m *merger) contentMap(patch map[string]any, at *place) (map[string]any, error) {
	out := make(map[string]any, len(patch))
	for _, key := range sortedKeys(patch) {
		value := patch[key]
		anchor, plain := pattern.ParseKey(key)
		condition := anchor == pattern.Condition || anchor == pattern.Global
		if key == directiveKey || value == nil || isDeletion(value) || condition && !writes(value) {
			continue
		}
		written, err := m.content(value, at.field(plain))
		if err != nil {
			return nil, err
		}
		out[plain] = written
	}
	return out, nil
}

// contentList joins what has the same merge keys, as a second merge would.
func (m *merger) contentList(patch []any, at *place) (any, error) {
	patch, _ = takeDirective(patch)
	if len(patch) > 0 && len(at.listRule().keys) > 0 && kindOf(patch[0]) == isMap {
		merged, _, err := m.mergeElements(nil, patch, at)
		if list, _ := merged.([]any); len(list) == 0 {
			merged = []any{}
		}
		return merged, err
	}
	out := make([]any, 0, len(patch))
	for i, element := range patch {
		if isDeletion(element) {
			continue
		}
		written, err := m.content(element, at.element(i))
		if err != nil {
			return nil, err
		}
		out = append(out, written)
	}
	return out, nil
}

// deletesFields tells whether a map sets a field of its own to null.
func deletesFields(patch any) bool {
	p, _ := patch.(map[string]any)
	for key, value := range p {
		if anchor, _ := pattern.ParseKey(key); value == nil && (anchor == pattern.None || anchor == pattern.Add) {
			return true
		}
	}
	return false
}

func isDeletion(patch any) bool {
	p, ok := patch.(map[string]any)
	return ok && p[directiveKey] == directiveDelete
}
