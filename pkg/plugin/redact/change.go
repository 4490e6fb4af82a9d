package redact

import (
	"errors"
	"slices"
	"strings"

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

// Step returns a step as it may be shown: without values of Secrets in its texts and
// in the paths of its fields. It has no object.
func Step(m *Masker, s *engine.Step) engine.Step {
	out := *s
	out.After, out.NotIdempotent = nil, m.Text(s.NotIdempotent)
	out.Warnings = slices.Clone(s.Warnings)
	for i, w := range out.Warnings {
		out.Warnings[i] = engine.Warning(m.Text(string(w)))
	}
	out.Fields = slices.Clone(s.Fields)
	for i := range out.Fields {
		out.Fields[i].Path, out.Fields[i].From, out.Fields[i].To = m.Path(s.Fields[i].Path), nil, nil
	}
	if s.Err != nil {
		out.Err = errors.New(m.Text(s.Err.Error()))
	}
	return out
}

// Pointer masks values of Secrets in the names of a JSON pointer.
func Pointer(m *Masker, pointer string) string {
	tokens := strings.Split(pointer, "/")
	for i, t := range tokens {
		tokens[i] = m.Name(t)
	}
	return strings.Join(tokens, "/")
}
