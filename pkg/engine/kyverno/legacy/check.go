package legacy

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/strategicmerge"
)

// check judges all conditions of an overlay on what is there. The error is an
// *overlay.ConditionError for the first that does not hold, in the order of keys,
// those of a map before those further down.
func (w *writer) check(patch map[string]any, live any, at string) error {
	if err := w.step(); err != nil {
		return err
	}
	object, _ := live.(map[string]any)
	keys := sortedKeys(patch)
	for _, key := range keys {
		if anchor, plain := pattern.ParseKey(key); anchor == pattern.Condition {
			if err := checkCondition(patch[key], object, at, plain); err != nil {
				return err
			}
		}
	}
	for _, key := range keys {
		anchor, plain := pattern.ParseKey(key)
		value, present := object[plain]
		if anchor == pattern.Condition && !writes(patch[key]) || anchor == pattern.Add && present {
			continue
		}
		if err := w.checkValue(patch[key], value, join(at, plain)); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) checkValue(patch, live any, at string) error {
	list, _ := live.([]any)
	switch p := patch.(type) {
	case map[string]any:
		if list != nil {
			return w.checkList([]any{p}, list, at)
		}
		return w.check(p, live, at)
	case []any:
		return w.checkList(p, list, at)
	default:
		return nil
	}
}

// checkList asks that, where elements of an overlay have conditions, one live
// element meets those of one of them.
func (w *writer) checkList(patch, live []any, at string) error {
	var failed error
	for _, element := range patch {
		p := mapOf(element)
		if p == nil || !hasConditions(p) {
			continue
		}
		candidates := live
		if len(candidates) == 0 {
			candidates = []any{nil}
		}
		for _, candidate := range candidates {
			err := w.check(p, candidate, at)
			if err == nil {
				return nil
			}
			if !isCondition(err) {
				return err
			}
			failed = err
		}
	}
	return failed
}

// checkCondition compares scalars as text: 3 and "3" are the same, as in the
// anchors of patchStrategicMerge.
func checkCondition(want any, object map[string]any, at, key string) error {
	got, present := object[key]
	var why pattern.Difference
	switch {
	case !present:
		return &strategicmerge.ConditionError{Path: join(at, key), Want: want, Missing: true}
	case writes(want) || pattern.Compile(asText(want)).Match(asText(got), &why):
		return nil
	}
	return &strategicmerge.ConditionError{Path: join(at, key), Want: want, Got: got, Why: why}
}

// asText is the text of a scalar, and any other value itself.
func asText(v any) any {
	if !isScalar(v) {
		return v
	}
	if s, ok := v.(string); ok {
		return s
	}
	text, err := json.Marshal(v)
	if err != nil { // no number of JSON
		return v
	}
	return string(text)
}

func isCondition(err error) bool {
	var c *strategicmerge.ConditionError
	return errors.As(err, &c)
}

// writes tells whether the value of a condition is written and not compared: it
// holds an add anchor. Such a condition only asks that its key be there.
func writes(condition any) bool {
	switch c := condition.(type) {
	case map[string]any:
		for _, key := range sortedKeys(c) {
			if isAdd(key) || writes(c[key]) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(c, writes)
	}
	return false
}

func isAdd(key string) bool {
	anchor, _ := pattern.ParseKey(key)
	return anchor == pattern.Add
}

// hasConditions tells whether there is a condition at any depth.
func hasConditions(patch any) bool {
	switch p := patch.(type) {
	case entry:
		return hasConditions(map[string]any(p))
	case map[string]any:
		for _, key := range sortedKeys(p) {
			anchor, _ := pattern.ParseKey(key)
			if anchor == pattern.Condition || hasConditions(p[key]) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(p, hasConditions)
	}
	return false
}

// onlyConditions tells whether nothing is left of a value to write where nothing
// is there: it holds conditions, and no field beside them.
func onlyConditions(patch any) bool {
	m := mapOf(patch)
	if len(m) == 0 {
		return false
	}
	for _, key := range sortedKeys(m) {
		if anchor, _ := pattern.ParseKey(key); anchor != pattern.Condition {
			return false
		}
	}
	return true
}
