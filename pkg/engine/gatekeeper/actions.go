package gatekeeper

import (
	"fmt"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/fielddiff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/gatekeeper/conflict"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/gatekeeper/image"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/gatekeeper/location"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/gatekeeper/walk"
)

// source is where an assigned value comes from; one of its fields is set.
type source struct {
	value    any
	metadata string // "name" or "namespace"
	external *external
}

// external is a value that only a provider in the cluster can tell.
type external struct {
	provider, dataSource string
	location             location.Path
}

// on is the value for one object.
func (s *source) on(key engine.ObjectKey) any {
	switch s.metadata {
	case "name":
		return key.Name
	case "namespace":
		return key.Namespace
	}
	return s.value
}

// assign writes a value, whatever was there.
type assign struct{ source source }

func (a *assign) terminal() (t conflict.Type, ends bool) {
	return conflict.Unknown, a.source.external != nil
}

func (a *assign) setter(key engine.ObjectKey) walk.Setter {
	if a.source.external != nil {
		return a.source.external
	}
	return assigned{a.source.on(key)}
}

// assigned writes one value. It is never modified after, so that all places that
// it is written to can share it.
type assigned struct{ value any }

// Set implements walk.Setter.
func (a assigned) Set(any, bool) (walk.Result, error) {
	return walk.Result{Write: true, Value: a.value}, nil
}

// Element implements walk.ElementSetter.
func (a assigned) Element() (map[string]any, error) {
	element, ok := a.value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("invalid value: `%v`, only objects can be added to keyed lists", a.value)
	}
	return element, nil
}

// Set implements walk.Setter: the provider is asked for nothing, and the field
// keeps what it has.
func (e *external) Set(any, bool) (walk.Result, error) {
	return walk.Result{Skip: &ExternalDataError{Provider: e.provider, DataSource: e.dataSource, Location: e.location}}, nil
}

// assignMetadata adds a label or an annotation; one that is there stays.
type assignMetadata struct{ source source }

func (*assignMetadata) terminal() (t conflict.Type, ends bool) { return conflict.Unknown, false }

func (a *assignMetadata) setter(key engine.ObjectKey) walk.Setter {
	if a.source.external != nil {
		return a.source.external
	}
	return added{a.source.on(key)}
}

type added struct{ value any }

// Set implements walk.Setter.
func (a added) Set(current any, exists bool) (walk.Result, error) {
	switch {
	case !exists:
		return walk.Result{Write: true, Value: a.value}, nil
	case fielddiff.Equal(current, a.value, fielddiff.Type{}):
		return walk.Result{}, nil
	}
	return walk.Result{Skip: &KeptError{Value: current}}, nil
}

// modifySet adds values to a list, or takes them out.
type modifySet struct {
	prune  bool
	values []any
}

func (*modifySet) terminal() (t conflict.Type, ends bool) { return conflict.Set, false }

func (m *modifySet) setter(engine.ObjectKey) walk.Setter { return m }

// Set implements walk.Setter.
func (m *modifySet) Set(current any, exists bool) (walk.Result, error) {
	if !exists {
		// As in Gatekeeper, pruning nothing creates the parents all the same.
		return walk.Result{Write: !m.prune && len(m.values) > 0, Value: m.values, Create: m.prune}, nil
	}
	list, ok := current.([]any)
	if !ok {
		return walk.Result{}, fmt.Errorf("%v is not a list of values, cannot treat it as a set", current)
	}
	if m.prune {
		kept := slices.DeleteFunc(slices.Clone(list), func(v any) bool { return contains(m.values, v) })
		return walk.Result{Write: len(kept) < len(list), Value: kept}, nil
	}
	merged := slices.Clone(list)
	for _, v := range m.values {
		if !contains(merged, v) {
			merged = append(merged, v)
		}
	}
	return walk.Result{Write: len(merged) > len(list), Value: merged}, nil
}

func contains(list []any, value any) bool {
	return slices.ContainsFunc(list, func(v any) bool { return fielddiff.Equal(v, value, fielddiff.Type{}) })
}

// assignImage exchanges parts of an image reference.
type assignImage struct{ parts image.Reference }

func (*assignImage) terminal() (t conflict.Type, ends bool) { return conflict.String, true }

func (a *assignImage) setter(engine.ObjectKey) walk.Setter { return a }

// Set implements walk.Setter. Where there is no image, what is assigned becomes
// one, as in Gatekeeper, although a domain or a tag alone names nothing.
func (a *assignImage) Set(current any, exists bool) (walk.Result, error) {
	text, isText := current.(string)
	if exists && !isText {
		return walk.Result{}, fmt.Errorf("expected value at AssignImage location to be a string, got %v of type %T", current, current)
	}
	changed := image.Parse(text).With(a.parts)
	out := walk.Result{Write: true, Value: changed.String()}
	if changed.Path == "" {
		out.Warn = fmt.Sprintf("there is no image here whose parts could be exchanged, and %q alone names none: add a path test with MustExist", out.Value)
	}
	return out, nil
}
