package gatekeeper

import (
	"fmt"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/gatekeeper/location"
)

// Action is what a mutator does at the end of its location.
type Action interface {
	// Setter writes on one object.
	Setter(engine.ObjectKey) location.Setter
	// Terminal is what the action takes the end of the location for, and whether
	// nothing can stand below.
	Terminal() (t NodeType, ends bool)
}

// Source is where an assigned value comes from; one of its fields is set.
type Source struct {
	Value any
	// Metadata is "name" or "namespace": that of the object.
	Metadata string
	External *External
}

// Provider is that of an external value; empty where the value is none.
func (s *Source) Provider() string {
	if s.External == nil {
		return ""
	}
	return s.External.Provider
}

// on is the value for one object.
func (s *Source) on(key engine.ObjectKey) any {
	switch s.Metadata {
	case "name":
		return key.Name
	case "namespace":
		return key.Namespace
	}
	return s.Value
}

// External is a value that only a provider in the cluster can tell.
type External struct {
	Provider, DataSource string
	Location             location.Path
}

// Set implements walk.Setter: the provider is asked for nothing, and the field
// keeps what it has.
func (e *External) Set(any, bool) (location.Result, error) {
	return location.Result{Skip: &ExternalDataError{Provider: e.Provider, DataSource: e.DataSource, Location: e.Location}}, nil
}

// Assign writes a value, whatever was there.
type Assign struct{ Source }

// Terminal implements Action.
func (a *Assign) Terminal() (t NodeType, ends bool) {
	return Unknown, a.External != nil
}

// Setter implements Action.
func (a *Assign) Setter(key engine.ObjectKey) location.Setter {
	if a.External != nil {
		return a.External
	}
	return assigned{a.on(key)}
}

// assigned writes one value. It is never modified after, so that all places that
// it is written to can share it.
type assigned struct{ value any }

// Set implements walk.Setter.
func (a assigned) Set(any, bool) (location.Result, error) {
	return location.Result{Write: true, Value: a.value}, nil
}

// Element implements walk.ElementSetter.
func (a assigned) Element() (map[string]any, error) {
	element, ok := a.value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("invalid value: `%v`, only objects can be added to keyed lists", a.value)
	}
	return element, nil
}

// AssignMetadata adds a label or an annotation; one that is there stays.
type AssignMetadata struct{ Source }

// Terminal implements Action.
func (*AssignMetadata) Terminal() (t NodeType, ends bool) { return Unknown, false }

// Setter implements Action.
func (a *AssignMetadata) Setter(key engine.ObjectKey) location.Setter {
	if a.External != nil {
		return a.External
	}
	return added{a.on(key)}
}

// added writes one value where there is none.
type added struct{ value any }

// Set implements walk.Setter.
func (a added) Set(current any, exists bool) (location.Result, error) {
	switch {
	case !exists:
		return location.Result{Write: true, Value: a.value}, nil
	case diff.Equal(current, a.value, diff.Type{}):
		return location.Result{}, nil
	}
	return location.Result{Skip: &KeptError{Value: current}}, nil
}

// ModifySet adds values to a list or, to prune it, takes them out.
type ModifySet struct {
	Prune  bool
	Values []any
}

// Terminal implements Action.
func (*ModifySet) Terminal() (t NodeType, ends bool) { return Set, false }

// Setter implements Action.
func (m *ModifySet) Setter(engine.ObjectKey) location.Setter { return m }

// Set implements walk.Setter.
func (m *ModifySet) Set(current any, exists bool) (location.Result, error) {
	if !exists {
		// As in Gatekeeper, pruning nothing creates the parents all the same.
		return location.Result{Write: !m.Prune && len(m.Values) > 0, Value: m.Values, Create: m.Prune}, nil
	}
	list, ok := current.([]any)
	if !ok {
		return location.Result{}, fmt.Errorf("%v is not a list of values, cannot treat it as a set", current)
	}
	if m.Prune {
		kept := slices.DeleteFunc(slices.Clone(list), func(v any) bool { return contains(m.Values, v) })
		return location.Result{Write: len(kept) < len(list), Value: kept}, nil
	}
	merged := slices.Clone(list)
	for _, v := range m.Values {
		if !contains(merged, v) {
			merged = append(merged, v)
		}
	}
	return location.Result{Write: len(merged) > len(list), Value: merged}, nil
}

func contains(list []any, value any) bool {
	return slices.ContainsFunc(list, func(v any) bool { return diff.Equal(v, value, diff.Type{}) })
}

// AssignImage exchanges the parts of an image reference that are not empty here.
type AssignImage struct{ Parts ImageReference }

// Terminal implements Action.
func (*AssignImage) Terminal() (t NodeType, ends bool) { return String, true }

// Setter implements Action.
func (a *AssignImage) Setter(engine.ObjectKey) location.Setter { return a }

// Set implements walk.Setter. Where there is no image, what is assigned becomes
// one, as in Gatekeeper, although a domain or a tag alone names nothing.
func (a *AssignImage) Set(current any, exists bool) (location.Result, error) {
	text, isText := current.(string)
	if exists && !isText {
		return location.Result{}, fmt.Errorf("expected value at AssignImage location to be a string, got %v of type %T", current, current)
	}
	changed := ParseImage(text).With(a.Parts)
	out := location.Result{Write: true, Value: changed.String()}
	if changed.Path == "" {
		out.Warn = fmt.Sprintf("there is no image here whose parts could be exchanged, and %q alone names none: add a path test with MustExist", out.Value)
	}
	return out, nil
}
