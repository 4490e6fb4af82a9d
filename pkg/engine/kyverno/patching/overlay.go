package patching

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// Overlay is an overlay with valid anchors: immutable and safe for concurrent use.
type Overlay struct{ root map[string]any }

// CompileOverlay compiles an overlay. The error is about an anchor, or a *limit.Error for deep nesting.
func CompileOverlay(overlay map[string]any) (*Overlay, error) {
	return &Overlay{overlay}, checkAnchors(overlay, "", 0)
}

func checkAnchors(value any, at string, depth int) error {
	if depth > limit.Depth {
		return &limit.Error{What: "levels of nesting in an overlay", Max: limit.Depth}
	}
	switch v := value.(type) {
	case map[string]any:
		for _, f := range fieldsOf(v) {
			if f.anchor != pattern.None && f.anchor != pattern.Add && f.anchor != pattern.Condition {
				return fmt.Errorf("%s: the anchor %s is not supported in an overlay: use () or +()", joinPath(at, f.name), f.anchor)
			}
			if f.compares() {
				continue
			}
			if err := checkAnchors(f.value, joinPath(at, f.name), depth+1); err != nil {
				return err
			}
		}
	case []any:
		for i, element := range v {
			if err := checkAnchors(element, fmt.Sprintf("%s[%d]", at, i), depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

type field struct {
	anchor pattern.Anchor
	name   string
	value  any
}

// fieldsOf lists the fields in key order.
func fieldsOf(m map[string]any) []field {
	out := make([]field, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		f := field{value: m[key]}
		f.anchor, f.name = pattern.ParseKey(key)
		out = append(out, f)
	}
	return out
}

// compares reports whether a field is a condition that only compares; others may only ask for the key to
// exist.
func (f field) compares() bool {
	return f.anchor == pattern.Condition && !pattern.Has(f.value, pattern.Add)
}

// Apply writes the overlay to an object, which is not modified. It returns the given map if nothing changed;
// then why, which may be nil, has a reason for each part of the overlay that the object does not hold
// already.
//
// The error is a *ConditionError if the overlay does not apply to this object, another one if it cannot be
// written, or the clock's.
func (o *Overlay) Apply(c *limit.Clock, live map[string]any, why *engine.Reasons) (map[string]any, error) {
	w := &writer{why: why, clock: c}
	failed := w.check(o.root, live, "")
	if err := c.Steps(0); err != nil {
		return live, err
	}
	if failed != nil {
		return live, failed
	}
	out := w.mergeMap(live, o.root, "")
	if err := cmp.Or(c.Steps(0), w.err); err != nil || diff.Same(out, live) {
		return live, err
	}
	return out, nil
}

// writer writes one overlay. It checks the clock, since elements merged into added ones multiply.
type writer struct {
	clock *limit.Clock
	why   *engine.Reasons
	err   error // a list holds maps in the overlay and other values in the object, or vice versa
}

// check checks all conditions of an overlay on the live value. It returns the first unmet one, in key order,
// each map before nested ones.
func (w *writer) check(patch map[string]any, live any, at string) *ConditionError {
	if w.clock.Step() != nil {
		return nil
	}
	object, _ := live.(map[string]any)
	fields := fieldsOf(patch)
	for _, f := range fields {
		if f.anchor == pattern.Condition {
			if failed := w.checkCondition(f, object, joinPath(at, f.name)); failed != nil {
				return failed
			}
		}
	}
	for _, f := range fields {
		value, present := object[f.name]
		if f.compares() || f.anchor == pattern.Add && present {
			continue
		}
		if failed := w.checkValue(f.value, value, joinPath(at, f.name)); failed != nil {
			return failed
		}
	}
	return nil
}

func (w *writer) checkValue(patch, live any, at string) *ConditionError {
	list, isList := live.([]any)
	switch p := patch.(type) {
	case map[string]any:
		if !isList {
			return w.check(p, live, at)
		}
		return w.checkList([]any{p}, list, at)
	case []any:
		return w.checkList(p, list, at)
	}
	return nil
}

// checkList requires that a live element meets the conditions of an overlay element, if there are any.
func (w *writer) checkList(patch, live []any, at string) (failed *ConditionError) {
	if len(live) == 0 {
		live = []any{nil}
	}
	for _, p := range patch {
		element, isMap := p.(map[string]any)
		if !isMap || !pattern.Has(p, pattern.Condition) {
			continue
		}
		for _, candidate := range live {
			if failed = w.check(element, candidate, at); failed == nil {
				return nil
			}
		}
	}
	return failed
}

// checkCondition compares scalars as strings: 3 and "3" are the same, as in patchStrategicMerge.
func (w *writer) checkCondition(f field, object map[string]any, at string) *ConditionError {
	got, present := object[f.name]
	if !present {
		return &ConditionError{Path: at, Want: f.value, Missing: true}
	}
	var why pattern.Difference
	if !f.compares() || pattern.Match(w.clock, overlayText(f.value), overlayText(got), &why) {
		return nil
	}
	if why.Path == "" { // the values themselves, not as strings
		why.Want, why.Got = f.value, got
	}
	return &ConditionError{Path: at, Want: f.value, Got: got, Why: why}
}

// overlayText returns a scalar as a string, and other values unchanged.
func overlayText(v any) any {
	if s, ok := pattern.Text(v); ok && v != nil {
		return s
	}
	return v
}

// merge writes an overlay's value over a live one of any type. A null writes nothing, since overlays do not
// delete.
func (w *writer) merge(live, patch any, at string) any {
	if w.clock.Step() != nil {
		return live
	}
	list, isList := live.([]any)
	switch p := patch.(type) {
	case nil:
		return live
	case map[string]any:
		if object, isMap := live.(map[string]any); isMap {
			return w.mergeMap(object, p, at)
		}
		if isList && holdsMaps(list) {
			return w.mergeList(list, []any{p}, at, true)
		}
	case []any:
		if isList {
			return w.mergeList(list, p, at, false)
		}
	default:
		if live != nil && diff.Equal(live, p, diff.Type{}) {
			return live // the same number, possibly of another type
		}
	}
	return w.content(patch)
}

// mergeMap writes the fields of an overlay whose conditions hold.
func (w *writer) mergeMap(live, patch map[string]any, at string) map[string]any {
	out := maps.Clone(live)
	for _, f := range fieldsOf(patch) {
		old, present := live[f.name]
		switch {
		case f.compares(), !present && (f.value == nil || onlyConditions(f.value)):
			continue
		case present && f.anchor == pattern.Add:
			if w.why != nil && !diff.Equal(old, f.value, diff.Type{}) {
				w.why.Add("%s is there already (%s): +() only adds", joinPath(at, f.name), engine.BriefValue(old))
			}
			continue
		case f.value == nil:
			w.why.Add("%s stays: an overlay does not delete", joinPath(at, f.name))
			continue
		}
		out[f.name] = w.merge(old, f.value, joinPath(at, f.name))
	}
	return out
}

// content returns an overlay's new value, without anchors and nulls.
func (w *writer) content(patch any) any {
	switch p := patch.(type) {
	case map[string]any:
		return w.mergeMap(map[string]any{}, p, "")
	case []any:
		out := make([]any, 0, len(p))
		for _, item := range p {
			if item != nil && !onlyConditions(item) && w.clock.Step() == nil {
				out = append(out, w.content(item))
			}
		}
		return out
	}
	return patch
}

// mergeList writes the elements of an overlay to a list. Each is compared with the original elements, and new
// items come last. A map in place of a list applies to each element and is never a new item.
func (w *writer) mergeList(live, patch []any, at string, each bool) []any {
	out := slices.Clone(live)
	var added []any
	for _, element := range patch {
		hits, isNew := w.targets(live, element, at, each)
		switch {
		case isNew:
			added = append(added, element)
		case len(hits) == 0 && element != nil:
			w.why.Add("no element of %s matches the overlay", at)
		}
		for _, i := range hits { // an earlier overlay element may have patched it
			out[i] = w.mergeMap(out[i].(map[string]any), element.(map[string]any), fmt.Sprintf("%s[%d]", at, i))
		}
	}
	for _, content := range w.content(added).([]any) {
		if !slices.ContainsFunc(out, func(old any) bool { return w.holds(old, content) }) {
			out = append(out, content)
		}
	}
	return out
}

// targets returns the live elements for an element of an overlay, or that it is a new item.
func (w *writer) targets(live []any, element any, at string, each bool) (hits []int, isNew bool) {
	patch, isMap := element.(map[string]any)
	if len(live) > 0 && element != nil && isMap != holdsMaps(live) {
		w.err = cmp.Or(w.err, fmt.Errorf("%s: the elements of the overlay's list are of another type than those that are there", at))
	}
	if !isMap || w.err != nil {
		return nil, element != nil
	}
	selects := each || pattern.Has(patch, pattern.Condition)
	all := selects || !hasScalars(patch)
	for i := range live {
		object, ok := live[i].(map[string]any)
		if ok && (all && w.check(patch, object, at) == nil || !all && w.holds(object, patch)) {
			hits = append(hits, i)
		}
	}
	return hits, len(hits) == 0 && !selects && (!all || len(live) == 0)
}

// holds reports whether a live value contains another, or an overlay's content without its +(). So an item
// with the server's defaults is not a new item. Null asks for nothing.
func (w *writer) holds(live, content any) bool {
	if w.clock.Step() != nil {
		return true // adds nothing more
	}
	switch c := content.(type) {
	case nil:
		return true
	case map[string]any:
		object, ok := live.(map[string]any)
		return ok && !slices.ContainsFunc(fieldsOf(c),
			func(f field) bool { return f.anchor != pattern.Add && !w.holds(object[f.name], f.value) })
	case []any:
		list, ok := live.([]any)
		return ok && !slices.ContainsFunc(c, func(item any) bool {
			return !slices.ContainsFunc(list, func(element any) bool { return w.holds(element, item) })
		})
	}
	return diff.Equal(live, content, diff.Type{})
}

// holdsMaps reports whether a list holds only maps; it may be empty.
func holdsMaps(list []any) bool {
	return len(list) == 0 ||
		slices.ContainsFunc(list, func(v any) bool { _, isMap := v.(map[string]any); return isMap })
}

// hasScalars reports whether a map has values other than maps, lists and +().
func hasScalars(patch map[string]any) bool {
	return slices.ContainsFunc(fieldsOf(patch), func(f field) bool {
		switch f.value.(type) {
		case nil, map[string]any, []any:
			return false
		}
		return f.anchor != pattern.Add
	})
}

// onlyConditions reports whether a new value holds only conditions, with nothing to write.
func onlyConditions(value any) bool {
	m, _ := value.(map[string]any)
	return len(m) > 0 && !slices.ContainsFunc(fieldsOf(m),
		func(f field) bool { return f.anchor != pattern.Condition })
}

func joinPath(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}
