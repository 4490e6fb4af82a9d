package legacy

import (
	"errors"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/strategicmerge"
)

// check judges all conditions of an overlay on what is there. The error is a
// *strategicmerge.ConditionError for the first that does not hold, in the order of
// keys, those of a map before those further down.
func (w *writer) check(patch *node, live any, at string) error {
	if err := w.clock.Step(); err != nil {
		return err
	}
	object, _ := live.(map[string]any)
	for _, field := range patch.fields {
		if field.anchor == pattern.Condition {
			if err := w.checkCondition(field, object, at); err != nil {
				return err
			}
		}
	}
	for _, field := range patch.fields {
		value, present := object[field.name]
		if field.pattern != nil || field.anchor == pattern.Add && present {
			continue
		}
		if err := w.checkValue(field, value, join(at, field.name)); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) checkValue(patch *node, live any, at string) error {
	list, _ := live.([]any)
	switch patch.kind {
	case isMap:
		if list != nil {
			return w.checkList([]*node{patch}, list, at)
		}
		return w.check(patch, live, at)
	case isList:
		return w.checkList(patch.elements, list, at)
	default:
		return nil
	}
}

// checkList asks that, where elements of an overlay have conditions, one live
// element meets those of one of them.
func (w *writer) checkList(patch []*node, live []any, at string) error {
	var failed error
	for _, p := range patch {
		if p.kind != isMap || !p.conditions {
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
func (w *writer) checkCondition(condition *node, object map[string]any, at string) error {
	got, present := object[condition.name]
	switch {
	case !present:
		return &strategicmerge.ConditionError{Path: join(at, condition.name), Want: condition.value, Missing: true}
	case condition.pattern == nil:
		return nil
	}
	var why pattern.Difference
	if matches, err := condition.pattern.Match(w.clock, asText(got), &why); err != nil || matches {
		return err
	}
	if why.Path == "" { // as they are, not as text
		why.Want, why.Got = condition.value, got
	}
	return &strategicmerge.ConditionError{Path: join(at, condition.name), Want: condition.value, Got: got, Why: why}
}

// asText returns the text of a scalar, and any other value itself.
func asText(v any) any {
	if s, ok := pattern.Text(v); ok && v != nil {
		return s
	}
	return v
}

func isCondition(err error) bool {
	var c *strategicmerge.ConditionError
	return errors.As(err, &c)
}
