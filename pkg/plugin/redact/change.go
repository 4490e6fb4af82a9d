package redact

import (
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// What stands behind the masks of values that differ, in the words of kubectl diff.
const (
	beforeSuffix = " (before)"
	afterSuffix  = " (after)"
)

// Change returns a change as it may be shown: without what rules made of Secrets, and without what a Secret itself holds.
func Change(c *engine.Change) *engine.Change {
	c = c.ToShow()
	if !engine.IsSecret(c.Before) && !engine.IsSecret(c.After) {
		return c
	}
	out := *c
	out.Before, out.After = pair(c.Before, c.After)
	out.Target = engine.Target{Key: c.Target.Key, Object: out.Before, Origin: c.Target.Origin}
	out.Fields, out.Steps = slices.Clone(c.Fields), slices.Clone(c.Steps)
	for i := range out.Fields {
		if f := &out.Fields[i]; f.Kind != engine.Moved {
			f.From, f.To = values(engine.FieldNames(f.Path), f.From, f.To)
		}
	}
	for i := range out.Steps {
		out.Steps[i].After = nil
	}
	return &out
}

// pair hides what two states of a Secret hold, either of which may be nil. If two values differ, so do their masks.
func pair(from, to *unstructured.Unstructured) (a, b *unstructured.Unstructured) {
	a, b = engine.HideObject(from), engine.HideObject(to)
	if a == nil || b == nil {
		return a, b
	}
	x, y := toldApart(from.Object, to.Object, a.Object, b.Object)
	return object(x), object(y)
}

func object(v any) *unstructured.Unstructured {
	fields, _ := v.(map[string]any)
	return &unstructured.Unstructured{Object: fields}
}

// toldApart returns two values that were hidden, with other masks in the place of those that hide what differs.
func toldApart(from, to, a, b any) (any, any) {
	x, isMap := a.(map[string]any)
	y, areMaps := b.(map[string]any)
	switch {
	case a == engine.HiddenValue && b == engine.HiddenValue && !diff.Same(from, to):
		return engine.HiddenValue + beforeSuffix, engine.HiddenValue + afterSuffix
	case !isMap || !areMaps:
		return a, b
	}
	was, _ := from.(map[string]any)
	is, _ := to.(map[string]any)
	x, y = maps.Clone(x), maps.Clone(y)
	for name := range x {
		if _, both := y[name]; both && !engine.Identical(was[name], is[name]) {
			x[name], y[name] = toldApart(was[name], is[name], x[name], y[name])
		}
	}
	return x, y
}

// values hides the values of a field of a Secret before and after a change; one that was not there is nil. The names are the
// fields that lead to it, up to the first list element.
func values(names []string, from, to any) (any, any) {
	a, b := pair(around(names, from), around(names, to))
	return valueAt(a, names), valueAt(b, names)
}

// around returns a Secret with nothing but a value below field names; nil without the value.
func around(names []string, v any) *unstructured.Unstructured {
	if v == nil {
		return nil
	}
	for _, name := range slices.Backward(names) {
		v = map[string]any{name: v}
	}
	fields, _ := v.(map[string]any)
	return object(diff.With(diff.With(fields, "apiVersion", "v1"), "kind", "Secret"))
}

func valueAt(u *unstructured.Unstructured, names []string) any {
	if u == nil {
		return nil
	}
	v, _, _ := unstructured.NestedFieldNoCopy(u.Object, names...) // there, since it was put there
	return v
}

// Holder returns the state that holds a field: the one before, if it was removed, else
// the one after. It is nil where there is neither.
func Holder(c *engine.Change, f *engine.FieldChange) *unstructured.Unstructured {
	if f.Kind == engine.Removed && c.Before != nil || c.After == nil {
		return c.Before
	}
	return c.After
}

// Step returns a step as files and reports have it: without objects, and with its reason as a string.
func Step(s *engine.Step) engine.Step {
	out := *s
	out.After = nil
	out.Fields = slices.Clone(s.Fields)
	for i := range out.Fields {
		out.Fields[i].From, out.Fields[i].To = nil, nil
	}
	if s.Err != nil {
		out.Err = errors.New(s.Err.Error())
	}
	return out
}
