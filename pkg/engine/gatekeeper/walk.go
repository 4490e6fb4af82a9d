package gatekeeper

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// assignment is the result of way.Set for one field. The zero value changes nothing.
type assignment struct {
	Write bool
	Value any // to write
	// Create creates the missing parents of the field even if nothing is written.
	Create bool
	// Skip is why the field was skipped, if that is worth telling.
	Skip error
	// Warn is a warning about the written value; it may be empty.
	Warn string
}

type walked struct {
	// Object is the given object if nothing changed, else a new one that shares all unchanged parts with it.
	Object  map[string]any
	Changed bool
	// Skip is the first reason why way.Set, or a path test, skipped something.
	Skip error
	Warn string // the first one from way.Set
	// Bare is a parent that was created although nothing was written below it.
	Bare location
	// Empty is an empty list whose elements were all to be changed.
	Empty location
}

// way is a location with its path tests and the change at its end.
type way struct {
	Path  location
	Tests pathTests
	// Set computes the new value of each field at the location. It must not modify the current value. Its result
	// is never modified and may be shared. If the location ends in a list element, Set gets no current value.
	Set func(current any, exists bool) (assignment, error)
	// Clock is shared by all mutators on the object.
	Clock *limit.Clock
}

// walk follows a way from the root of an object and calls Set at its end. Errors are in Gatekeeper's words,
// or from a limit; the object then stays unchanged.
func walk(object map[string]any, way way) (walked, error) {
	if len(way.Path) == 0 {
		return walked{Object: object}, errors.New("attempting to mutate an empty target location")
	}
	w := walker{way: way, walked: walked{Object: object}}
	next, did, err := w.visit(object, 0)
	if err != nil {
		return walked{Object: object}, err
	}
	if w.Changed = did.changed; did.changed {
		w.Object, _ = next.(map[string]any)
	}
	return w.walked, nil
}

type walker struct {
	way
	walked
}

// effect is the result at or below a node.
type effect struct {
	touched bool // create missing parents
	changed bool
	wrote   bool
}

// visit returns the new value for a value at a depth of the path.
func (w *walker) visit(current any, depth int) (any, effect, error) {
	if err := w.Clock.Step(); err != nil {
		return nil, effect{}, err
	}
	last := depth == len(w.Path)-1
	switch node := w.Path[depth].(type) {
	case listNode:
		list, ok := current.([]any)
		if !ok {
			return nil, effect{}, w.mismatch("List", current, depth)
		}
		switch {
		case last:
			return w.element(list, node, depth)
		case node.glob():
			return w.every(list, depth)
		}
		return w.keyed(list, node, depth)
	case fieldNode:
		object, ok := current.(map[string]any)
		if !ok {
			return nil, effect{}, w.mismatch("object", current, depth)
		}
		if last {
			return w.set(object, string(node), depth)
		}
		return w.field(object, string(node), depth)
	}
	return current, effect{}, nil
}

// allowed reports whether the tests hold for a value, or for a missing one, and records the first that does
// not.
func (w *walker) allowed(depth int, value any, exists bool) bool {
	condition, tested := w.Tests[depth]
	if !tested || condition == mustExist && exists || condition == mustNotExist && !exists {
		return true
	}
	if w.Skip == nil {
		w.Skip = &pathTestError{SubPath: w.Path[:depth+1], Condition: condition, exists: exists, found: value}
	}
	return false
}

// field continues below a field of an object. A missing field is added only if required below it.
func (w *walker) field(object map[string]any, name string, depth int) (any, effect, error) {
	child, exists := object[name]
	if !w.allowed(depth, child, exists) {
		return object, effect{}, nil
	}
	if !exists {
		child = w.missing(depth)
	}
	next, did, err := w.visit(child, depth+1)
	if err != nil {
		return nil, effect{}, err
	}
	if !exists && did.touched {
		w.attached(depth, did)
		did.changed = true
	}
	if !did.changed {
		return object, did, nil
	}
	return diff.With(object, name, next), did, nil
}

// missing returns an empty value for the node at the next depth.
func (w *walker) missing(depth int) any {
	if _, isList := w.Path[depth+1].(listNode); isList {
		return []any{}
	}
	return map[string]any{}
}

func (w *walker) attached(depth int, did effect) {
	if !did.wrote {
		w.Bare = w.Path[:depth+1]
	}
}

func (w *walker) set(object map[string]any, name string, depth int) (any, effect, error) {
	current, exists := object[name]
	if !w.allowed(depth, current, exists) {
		return object, effect{}, nil
	}
	if list, isList := current.([]any); isList {
		if err := w.Clock.Steps(len(list)); err != nil {
			return nil, effect{}, err
		}
	}
	result, err := w.Set(current, exists)
	if err != nil {
		return nil, effect{}, err
	}
	if w.Skip == nil {
		w.Skip = result.Skip
	}
	w.Warn = cmp.Or(w.Warn, result.Warn)
	if !result.Write {
		return object, effect{touched: result.Create}, nil
	}
	if exists && diff.Equal(current, result.Value, diff.Type{}) {
		return object, effect{touched: true, wrote: true}, nil
	}
	return diff.With(object, name, result.Value), effect{touched: true, changed: true, wrote: true}, nil
}

// every continues below all elements of a list.
func (w *walker) every(list []any, depth int) (any, effect, error) {
	if len(list) == 0 {
		w.Empty = w.Path[:depth]
	}
	if !w.allowed(depth, list, true) { // Gatekeeper treats even an empty list as having elements
		return list, effect{}, nil
	}
	return w.elements(list, depth, func(any) bool { return true })
}

// keyed continues below the elements that the node names; if there are none, below a new last element.
func (w *walker) keyed(list []any, node listNode, depth int) (any, effect, error) {
	if err := w.Clock.Steps(len(list)); err != nil {
		return nil, effect{}, err
	}
	names := func(element any) bool {
		object, ok := element.(map[string]any)
		return ok && named(object, node)
	}
	if i := slices.IndexFunc(list, names); i >= 0 {
		if !w.allowed(depth, list[i], true) {
			return list, effect{}, nil
		}
		return w.elements(list, depth, names)
	}
	if !w.allowed(depth, nil, false) {
		return list, effect{}, nil
	}
	next, did, err := w.visit(map[string]any{node.Key: node.Value}, depth+1)
	if err != nil {
		return nil, effect{}, err
	}
	if !did.touched {
		return list, did, nil
	}
	w.attached(depth, did)
	did.changed = true
	return append(slices.Clip(list), next), did, nil
}

// elements continues below some elements of a list.
func (w *walker) elements(list []any, depth int, wanted func(any) bool) (any, effect, error) {
	out := list
	var all effect
	if err := w.Clock.Steps(len(list)); err != nil {
		return nil, effect{}, err
	}
	for i, element := range list {
		if !wanted(element) {
			continue
		}
		next, did, err := w.visit(element, depth+1)
		if err != nil {
			return nil, effect{}, err
		}
		if did.changed {
			if !all.changed {
				out = slices.Clone(list)
			}
			out[i] = next
		}
		all = effect{all.touched || did.touched, all.changed || did.changed, all.wrote || did.wrote}
	}
	return out, all, nil
}

// element ends the path in a list: it replaces the first element that the node names, or appends a new one.
func (w *walker) element(list []any, node listNode, depth int) (any, effect, error) {
	result, err := w.Set(nil, false)
	if err == nil {
		err = w.Clock.Steps(len(list))
	}
	if err != nil {
		return nil, effect{}, err
	}
	wrote := effect{touched: true, changed: true, wrote: true}
	for i, existing := range list {
		object, ok := existing.(map[string]any)
		if !ok {
			return nil, effect{}, fmt.Errorf("cast error, unable to case %T to map[string]interface{} (at %s)", existing, w.Path[:depth].place())
		}
		if !named(object, node) {
			continue
		}
		switch {
		case !w.allowed(depth, object, true):
			return list, effect{}, nil
		case diff.Equal(object, result.Value, diff.Type{}):
			return list, effect{touched: true, wrote: true}, nil
		}
		out := slices.Clone(list)
		out[i] = result.Value
		return out, wrote, nil
	}
	if !w.allowed(depth, nil, false) {
		return list, effect{}, nil
	}
	return append(slices.Clip(list), result.Value), wrote, nil
}

// mismatch is the error of a value whose type the location does not allow: Gatekeeper's message, and the
// place.
func (w *walker) mismatch(want string, got any, depth int) error {
	return fmt.Errorf("mismatch between path entry (type: %s) and received object (type: %T). Path: %s (at %s)", want, got, w.Path[depth], w.Path[:depth].place())
}

// named reports whether a node names an element. Strings never equal numbers.
func named(element map[string]any, node listNode) bool {
	value, present := element[node.Key]
	return present && sameKey(value, node.Value)
}

func sameKey(a, b any) bool {
	switch a := a.(type) {
	case string:
		return a == b
	case int64, float64, bool:
		return diff.Equal(a, b, diff.Type{})
	}
	return false
}
