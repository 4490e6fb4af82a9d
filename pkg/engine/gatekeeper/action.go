package gatekeeper

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// action is what a mutator does at the end of its location.
type action interface {
	// set is way.Set for one object.
	set(of engine.ObjectKey, current any, exists bool) (assignment, error)
}

// source is where an assigned value comes from; one of its fields is set.
type source struct {
	Value any
	// Metadata is "name" or "namespace": that of the object.
	Metadata string
	External *external
}

// valueFor is the value for one object.
func (s *source) valueFor(key engine.ObjectKey) any {
	switch s.Metadata {
	case "name":
		return key.Name
	case "namespace":
		return key.Namespace
	}
	return s.Value
}

// external is a value that only an external data provider, asked from inside the cluster, knows. It is also
// the reason why a field keeps its value.
type external struct {
	Provider, DataSource string
	Location             location
}

// Error names the place and the provider.
func (e *external) Error() string {
	return fmt.Sprintf("%s: the value comes from the external data provider %q (dataSource %s), which can only be asked by Gatekeeper",
		e.Location, e.Provider, e.DataSource)
}

// assign writes a value, whatever was there; or, to add a label or an annotation, where there is none. The
// value is never modified later, so that all places that it is written to can share it.
type assign struct {
	source
	adds bool
}

// set implements action. A provider is not asked.
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

// maxQuoted bounds how much of a value a message quotes, in bytes.
const maxQuoted = 1000

// quoted is a value in a message, as Go prints it.
func quoted(value any) string {
	return engine.Shorten(fmt.Sprint(value), maxQuoted)
}

// modifySet adds values to a list or, to prune it, takes them out.
type modifySet struct {
	Prune  bool
	Values []any
}

// set implements action.
func (m *modifySet) set(_ engine.ObjectKey, current any, exists bool) (assignment, error) {
	if !exists {
		// As in Gatekeeper, pruning nothing creates the parents all the same.
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

// keyOf is the JSON of a value: of numbers, it does not matter whether they have a fraction.
func keyOf(value any) string {
	if text, isText := value.(string); isText {
		return `"` + text
	}
	raw, _ := json.Marshal(value) // a value of JSON
	return string(raw)
}

// assignImage exchanges the parts of an image reference that are not empty here.
type assignImage struct{ Parts imageReference }

// set implements action. Where there is no image, what is assigned becomes
// one, as in Gatekeeper, although a domain or a tag alone names nothing.
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
