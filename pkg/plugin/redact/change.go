package redact

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

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
