package gatekeeper

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// action is the change at the end of a mutator's location.
type action interface {
	// set is way.Set for one object.
	set(of engine.ObjectKey, current any, exists bool) (assignment, error)
}

// source is the origin of an assigned value; one of its fields is set.
type source struct {
	Value any
	// Metadata is "name" or "namespace", of the object.
	Metadata string
	External *external
}

func (s *source) valueFor(key engine.ObjectKey) any {
	switch s.Metadata {
	case "name":
		return key.Name
	case "namespace":
		return key.Namespace
	}
	return s.Value
}

// external is a value that only an external data provider inside the cluster knows. It is also the reason why
// a field keeps its value.
type external struct {
	Provider, DataSource string
	Location             location
}

// Error names the field and the provider.
func (e *external) Error() string {
	return fmt.Sprintf("%s: the value comes from the external data provider %q (dataSource %s), which can only be asked by Gatekeeper",
		e.Location, e.Provider, e.DataSource)
}

// assign writes a value or, for a label or an annotation, adds it if there is none. The value is never
// modified, so all fields with it can share it.
type assign struct {
	source
	adds bool
}

// set implements action. No provider is called.
func (a *assign) set(of engine.ObjectKey, current any, exists bool) (assignment, error) {
	value := a.valueFor(of)
	switch {
	case a.External != nil:
		return assignment{Skip: a.External}, nil
	case !a.adds || !exists:
		return assignment{Write: true, Value: value}, nil
	case diff.Equal(current, value, diff.Type{}):
		return assignment{}, nil
	}
	return assignment{Skip: &keptError{Value: current}}, nil
}

// maxQuoted bounds a value in a message, in bytes.
const maxQuoted = 1000

// quoted returns a value for a message, as Go prints it.
func quoted(value any) string {
	return engine.Shorten(fmt.Sprint(value), maxQuoted)
}

// modifySet adds values to a list or, to prune it, removes them.
type modifySet struct {
	Prune  bool
	Values []any
}

// set implements action.
func (m *modifySet) set(_ engine.ObjectKey, current any, exists bool) (assignment, error) {
	if !exists {
		// As in Gatekeeper, even pruning nothing creates the parents.
		return assignment{Write: !m.Prune && len(m.Values) > 0, Value: m.Values, Create: m.Prune}, nil
	}
	list, ok := current.([]any)
	if !ok {
		return assignment{}, fmt.Errorf("%s is not a list of values, cannot treat it as a set", quoted(current))
	}
	if m.Prune {
		pruned := keysOf(m.Values)
		kept := slices.DeleteFunc(slices.Clone(list), func(v any) bool { return pruned.Has(keyOf(v)) })
		return assignment{Write: len(kept) < len(list), Value: kept}, nil
	}
	known, out := keysOf(list), slices.Clip(list)
	for _, v := range m.Values {
		if key := keyOf(v); !known.Has(key) {
			known.Insert(key)
			out = append(out, v)
		}
	}
	if len(out) == len(list) {
		return assignment{}, nil
	}
	return assignment{Write: true, Value: out}, nil
}

func keysOf(values []any) sets.Set[string] {
	s := make(sets.Set[string], len(values))
	for _, v := range values {
		s.Insert(keyOf(v))
	}
	return s
}

// keyOf returns the JSON of a value; 1 and 1.0 are equal.
func keyOf(value any) string {
	if text, isText := value.(string); isText {
		return `"` + text
	}
	raw, _ := json.Marshal(value) // a JSON value never fails
	return string(raw)
}

// assignImage replaces the parts of an image reference that are set here.
type assignImage struct{ Parts imageReference }

// set implements action. Without an image, the assigned parts become one, as in Gatekeeper, although a domain
// or a tag is not a valid image.
func (a *assignImage) set(_ engine.ObjectKey, current any, exists bool) (assignment, error) {
	text, isText := current.(string)
	if exists && !isText {
		return assignment{}, fmt.Errorf("expected value at AssignImage location to be a string, got %s of type %T", quoted(current), current)
	}
	changed := parseImage(text).With(a.Parts)
	out := assignment{Write: true, Value: changed.String()}
	if changed.Path == "" {
		out.Warn = fmt.Sprintf("there is no image here whose parts could be exchanged, and %q alone names none: add a path test with MustExist", out.Value)
	}
	return out, nil
}
