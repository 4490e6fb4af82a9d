package redact

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// States returns both states of an object, trimmed and masked.
func States(m *Masker, c *engine.Change, d Detail) (before, after *unstructured.Unstructured) {
	return m.Pair(Trim(c.Before, c.Fields, d), Trim(c.After, c.Fields, d))
}

// Values returns what a field holds before and after, masked; of a moved element its
// places.
func Values(m *Masker, c *engine.Change, f *engine.FieldChange) (from, to any) {
	holder := Holder(c, f)
	if f.Kind == engine.Moved || holder == nil {
		return f.From, f.To
	}
	return m.Value(holder, engine.FieldNames(f.Path), f.From, f.To)
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
