package jsonpatch

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// Apply applies the operations one after the other, all or none of them. It
// returns the very map that it was given where nothing changed, and otherwise
// one that shares with it whatever no operation touched; the document itself is
// not modified. Where nothing changed, why holds what each operation found, or that
// they undo each other; it may be nil.
// The error is an *OperationError.
func (p Patch) Apply(c *limit.Clock, doc map[string]any, why *engine.Reasons) (map[string]any, error) {
	current, wrote := doc, false
	for i, o := range p.operations {
		next, err := o.apply(c, current)
		if err != nil {
			return doc, &OperationError{Index: i, Op: o.op, Path: o.path, Err: err}
		}
		if why != nil && diff.Same(next, current) {
			why.Add("%s %s: %s", o.op, o.path, o.idle())
		} else {
			wrote = true
		}
		current = next
	}
	if len(p.operations) == 0 {
		why.Add("the patch has no operations")
	}
	if wrote && len(p.operations) > 1 { // which nobody reads where they do not
		why.Add("the operations revert each other")
	}
	if !diff.Same(current, doc) {
		return current, nil
	}
	return doc, nil
}

// idle returns why the operation changes nothing.
func (o operation) idle() string {
	switch o.op {
	case opRemove:
		return "there is no such path; nothing to remove"
	case opTest:
		return "the test passes, and changes nothing"
	}
	return "the object holds this value already"
}

// apply applies one operation.
func (o operation) apply(c *limit.Clock, doc map[string]any) (map[string]any, error) {
	switch o.op {
	case opAdd:
		return write(doc, o.to, editor{Clock: c, last: add, value: o.value, create: true})
	case opReplace:
		return write(doc, o.to, editor{Clock: c, last: replace, value: o.value, create: true})
	case opRemove:
		return write(doc, o.to, editor{Clock: c, last: remove, lenient: true})
	case opTest:
		return doc, test(doc, o.to, o.value)
	}
	moved, err := get(doc, o.from)
	if err != nil {
		return nil, fmt.Errorf("from: %w", err)
	}
	if o.op == opCopy {
		if err := limit.Value(moved); err != nil { // an object that is copied into itself doubles each time
			return nil, err
		}
	}
	if o.op == opMove {
		if doc, err = write(doc, o.from, editor{Clock: c, last: remove}); err != nil {
			return nil, err
		}
	}
	return write(doc, o.to, editor{Clock: c, last: add, value: moved})
}

// Reasons why a path leads nowhere.
var (
	errMissing = errors.New("there is no such path in the object")
	errTest    = errors.New("the object holds another value there")
)

// test fails unless the value is at the path; a missing key counts as null.
func test(doc map[string]any, path []string, want any) error {
	got, err := get(doc, path)
	if err != nil && len(path) > 0 && want == nil {
		parent, parentErr := get(doc, path[:len(path)-1])
		if _, isMap := parent.(map[string]any); isMap && parentErr == nil {
			return nil
		}
	}
	if err != nil {
		return err
	}
	if !diff.Same(got, want) {
		return errTest
	}
	return nil
}

// Find returns what is at a JSON pointer.
func Find(doc any, pointer string) (any, error) {
	path, err := parsePointer(pointer)
	if err != nil {
		return nil, err
	}
	return get(doc, path)
}

// get follows a path to what must be there.
func get(node any, path []string) (any, error) {
	for _, token := range path {
		child, ok, err := step(node, token)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, errMissing
		}
		node = child
	}
	return node, nil
}

// step goes one token down.
func step(node any, token string) (child any, ok bool, err error) {
	switch n := node.(type) {
	case map[string]any:
		child, ok = n[token]
		return child, ok, nil
	case []any:
		i, isIndex := index(token)
		if !isIndex {
			return nil, false, errNotIndex(token)
		}
		if i < 0 {
			i += len(n)
		}
		if i < 0 || i >= len(n) {
			return nil, false, nil
		}
		return n[i], true, nil
	default:
		return nil, false, errMissing
	}
}

func errNotIndex(token string) error {
	return fmt.Errorf("%q is not a list index", token)
}

func index(token string) (int, bool) {
	i, err := strconv.Atoi(token)
	return i, err == nil
}

// editor is what an operation does at the end of its path, and on its way.
type editor struct {
	*limit.Clock
	// last edits the map or list that holds the last token of the path, with the value; it
	// returns a copy, or what it was given where there is nothing to do.
	last  func(parent any, token string, value any) (any, error)
	value any
	// create makes missing parents: a list where the next token is an index
	// or "-", else a map.
	create bool
	// lenient leaves the object as it is where the path leads nowhere.
	lenient bool
}

// write edits the document at the path. The empty path takes the operation's
// value for the document itself.
func write(doc map[string]any, path []string, e editor) (map[string]any, error) {
	if len(path) == 0 {
		whole, err := e.last(nil, "", e.value)
		if err != nil {
			return nil, err
		}
		return whole.(map[string]any), nil
	}
	edited, err := e.edit(doc, path)
	if err != nil {
		return nil, err
	}
	return edited.(map[string]any), nil
}

// edit returns the node with the edit made at the path below it.
func (e editor) edit(node any, path []string) (any, error) {
	if err := e.Step(); err != nil {
		return nil, err
	}
	if len(path) == 1 {
		return e.last(node, path[0], e.value)
	}
	token := path[0]
	child, ok, err := step(node, token)
	switch {
	case e.create && (ok && child == nil || !ok):
		return e.grow(node, path)
	case e.lenient && (!ok || err != nil):
		return node, nil
	case err != nil:
		return nil, err
	case !ok:
		return nil, errMissing
	}
	edited, err := e.edit(child, path[1:])
	if err != nil {
		return nil, err
	}
	return replaceChild(node, token, edited), nil
}

// grow puts a new parent where the path has none.
func (e editor) grow(node any, path []string) (any, error) {
	parent, err := e.newParent(path[1])
	if err != nil {
		return nil, err
	}
	edited, err := e.edit(parent, path[1:])
	if err != nil {
		return nil, err
	}
	list, isList := node.([]any)
	if !isList {
		return add(node, path[0], edited)
	}
	i, isIndex := index(path[0])
	if !isIndex {
		return nil, errNotIndex(path[0])
	}
	if i >= 0 && i < len(list) {
		return replaceChild(node, path[0], edited), nil // a null gives way
	}
	if list, err = e.pad(list, i); err != nil {
		return nil, err
	}
	return add(list, path[0], edited)
}

// newParent is what a token wants to be put into; a list is as long as the
// index asks for.
func (e editor) newParent(token string) (any, error) {
	i, isIndex := index(token)
	switch {
	case token == "-":
		return []any{}, nil
	case !isIndex:
		return map[string]any{}, nil
	case i < -1:
		return nil, fmt.Errorf("there is no list to count %d back in", -i)
	default:
		return e.pad(nil, i)
	}
}

// maxPadding bounds the nulls that an index may put into a list.
const maxPadding = 1000

// pad returns a list long enough to add at index i.
func (e editor) pad(list []any, i int) ([]any, error) {
	if i-len(list) > maxPadding {
		return nil, fmt.Errorf("index %d is far beyond the end of the list, which has %d elements", i, len(list))
	}
	padded := slices.Clone(list)
	if padded == nil {
		padded = []any{}
	}
	for len(padded) < i {
		padded = append(padded, nil)
	}
	return padded, nil
}

// replaceChild returns a copy of the node with another child at a token that is known to exist.
func replaceChild(node any, token string, child any) any {
	switch n := node.(type) {
	case map[string]any:
		return diff.With(n, token, child)
	case []any:
		i, _ := index(token)
		if i < 0 {
			i += len(n)
		}
		out := slices.Clone(n)
		out[i] = child
		return out
	default:
		return node
	}
}

// add inserts into lists, and sets keys of maps.
func add(parent any, token string, value any) (any, error) {
	list, isList := parent.([]any)
	if !isList {
		return set(parent, token, value)
	}
	if token == "-" {
		return append(slices.Clip(list), value), nil
	}
	i, isIndex := index(token)
	if !isIndex {
		return nil, errNotIndex(token)
	}
	if i < 0 {
		i += len(list) + 1
	}
	if i < 0 || i > len(list) {
		return nil, errOutside(token, list)
	}
	return slices.Insert(slices.Clone(list), i, value), nil
}

// replace sets an element of a list, never moving others; what is not there is
// added at the end.
func replace(parent any, token string, value any) (any, error) {
	list, isList := parent.([]any)
	if !isList {
		return set(parent, token, value)
	}
	i, isIndex := index(token)
	switch {
	case token == "-", isIndex && i == len(list), i == -1 && len(list) == 0:
		return append(slices.Clip(list), value), nil
	case !isIndex:
		return nil, errNotIndex(token)
	case i < -len(list) || i > len(list):
		return nil, errOutside(token, list)
	}
	return replaceChild(list, token, value), nil
}

// remove takes out what is there; what is not there needs no removing.
func remove(parent any, token string, _ any) (any, error) {
	switch n := parent.(type) {
	case map[string]any:
		if _, ok := n[token]; !ok {
			return n, nil
		}
		return diff.Without(n, token), nil
	case []any:
		i, isIndex := index(token)
		if !isIndex {
			return nil, errNotIndex(token)
		}
		if i < 0 {
			i += len(n)
		}
		if i < 0 || i >= len(n) {
			return n, nil
		}
		return slices.Delete(slices.Clone(n), i, i+1), nil
	default:
		return parent, nil
	}
}

// set sets a key of a map. No parent at all means the document itself.
func set(parent any, token string, value any) (any, error) {
	switch p := parent.(type) {
	case map[string]any:
		return diff.With(p, token, value), nil
	case nil:
		if token == "" {
			return value, nil
		}
	}
	return nil, fmt.Errorf("the parent of %q is neither a map nor a list", token)
}

func errOutside(token string, list []any) error {
	return fmt.Errorf("index %s is out of range: the list has %d elements", token, len(list))
}
