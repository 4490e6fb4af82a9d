package patching

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
// The error is an *OperationError or, of old patches, joins one for each operation that fails.
func (p JSONPatch) Apply(c *limit.Clock, doc map[string]any, why *engine.Reasons) (map[string]any, error) {
	current, wrote := doc, false
	var errs []error
	for i, o := range p.operations {
		next, err := o.apply(c, current, p.old)
		if err != nil {
			err = &OperationError{Index: i, Op: o.op, Path: o.path, Err: err}
		}
		switch {
		case err != nil && p.old && o.op == opRemove:
			why.Add("%v", err)
			continue
		case err != nil && p.old:
			errs = append(errs, err)
			continue
		case err != nil:
			return doc, err
		case why != nil && diff.Same(next, current):
			why.Add("%s %s: %s", o.op, o.path, o.idle())
		default:
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
	if len(errs) == 0 && !diff.Same(current, doc) {
		return current, nil
	}
	return doc, engine.JoinErrors(errs)
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

// apply applies one operation, perhaps of an old patch.
func (o operation) apply(c *limit.Clock, doc map[string]any, old bool) (map[string]any, error) {
	switch o.op {
	case opAdd, opReplace:
		return write(doc, o.to, editor{Clock: c, op: o.op, value: o.value, create: true, spread: old})
	case opRemove:
		return write(doc, o.to, editor{Clock: c, op: opRemove, lenient: true})
	case opTest:
		return doc, test(doc, o.to, o.value)
	}
	moved, err := get(doc, o.from)
	if err == nil && o.op == opCopy {
		err = limit.Value(moved) // an object that is copied into itself doubles each time
	}
	if err != nil {
		return nil, fmt.Errorf("from: %w", err)
	}
	if o.op == opMove {
		if doc, err = write(doc, o.from, editor{Clock: c, op: opRemove}); err != nil {
			return nil, err
		}
	}
	return write(doc, o.to, editor{Clock: c, op: opAdd, value: moved})
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
		i, inside, err := position(n, token)
		if inside {
			child = n[i]
		}
		return child, inside, err
	}
	return nil, false, errMissing
}

// position is the place of an element, negative indices counting from the end, and whether there is one.
func position(list []any, token string) (i int, inside bool, err error) {
	if i, err = strconv.Atoi(token); err != nil {
		return 0, false, fmt.Errorf("%q is not a list index", token)
	}
	if i < 0 {
		i += len(list)
	}
	return i, i >= 0 && i < len(list), nil
}

// editor is what an operation does at the end of its path, and on its way.
type editor struct {
	*limit.Clock
	op    string // opAdd, opReplace, opRemove or opPut
	value any
	// create makes missing parents: a list where the next token is an index
	// or "-", else a map.
	create bool
	// lenient leaves the object as it is where the path leads nowhere.
	lenient bool
	// spread inserts the elements of a list that is added to a list.
	spread bool
}

// opPut takes a changed child for the one that was there, or that is now.
const opPut = "put"

// write edits the document at the path. The empty path takes the operation's
// value for the document itself.
func write(doc map[string]any, path []string, e editor) (map[string]any, error) {
	if len(path) == 0 {
		return e.value.(map[string]any), nil
	}
	edited, err := e.edit(doc, path)
	if err != nil {
		return nil, err
	}
	return edited.(map[string]any), nil
}

// edit returns the node with the edit made at the path below it: a copy, or what it was given where there is
// nothing to do.
func (e editor) edit(node any, path []string) (any, error) {
	if err := e.Step(); err != nil {
		return nil, err
	}
	if len(path) > 1 {
		child, ok, err := step(node, path[0])
		switch {
		case e.create && child == nil:
			child, err = newParent(path[1])
		case e.lenient && !ok:
			return node, nil
		case err == nil && !ok:
			err = errMissing
		}
		if err == nil {
			child, err = e.edit(child, path[1:])
		}
		if err != nil {
			return nil, err
		}
		e.op, e.value = opPut, child
	}
	switch n := node.(type) {
	case map[string]any:
		if e.op == opRemove {
			return diff.Without(n, path[0]), nil
		}
		return diff.With(n, path[0], e.value), nil
	case []any:
		return e.editList(n, path[0])
	}
	if e.op == opRemove {
		return node, nil
	}
	return nil, fmt.Errorf("the parent of %q is neither a map nor a list", path[0])
}

// editList removes what is there; what is not there needs no removing. An add inserts, and a replace never
// moves others: what is not there is added at the end. A put makes the list as long as it has to be.
func (e editor) editList(list []any, token string) (any, error) {
	i, inside, err := position(list, token)
	switch {
	case e.op == opRemove && inside:
		return slices.Delete(slices.Clone(list), i, i+1), nil
	case e.op == opRemove:
		return list, err
	case inside && e.op != opAdd:
		list = slices.Clone(list)
		list[i] = e.value
		return list, nil
	case token == "-" && e.op == opAdd:
		i, err = len(list), nil
	case token == "-" && e.op == opReplace, e.op == opReplace && (err == nil && i == len(list) || len(list) == 0 && token == "-1"):
		return append(slices.Clip(list), e.value), nil
	case err == nil && e.op == opPut:
		list, err = pad(list, i)
	}
	if err != nil {
		return nil, err
	}
	if token[0] == '-' && token != "-" { // counts from the place behind the end
		i++
	}
	if i < 0 || i > len(list) || e.op == opReplace {
		return nil, fmt.Errorf("index %s is out of range: the list has %d elements", token, len(list))
	}
	if items, isList := e.value.([]any); isList && e.spread && e.op == opAdd {
		return slices.Insert(slices.Clone(list), i, items...), nil
	}
	return slices.Insert(slices.Clone(list), i, e.value), nil
}

// newParent is what a token wants to be put into; a list is as long as the
// index asks for.
func newParent(token string) (any, error) {
	i, err := strconv.Atoi(token)
	switch {
	case token == "-":
		return []any{}, nil
	case err != nil:
		return map[string]any{}, nil
	case i < -1:
		return nil, fmt.Errorf("there is no list to count %d back in", -i)
	}
	return pad([]any{}, i)
}

// maxPadding bounds the nulls that an index may put into a list.
const maxPadding = 1000

// pad returns a list long enough to add at index i.
func pad(list []any, i int) ([]any, error) {
	missing := max(i-len(list), 0)
	if missing > maxPadding {
		return nil, fmt.Errorf("index %d is far beyond the end of the list, which has %d elements", i, len(list))
	}
	return append(slices.Clip(list), make([]any, missing)...), nil
}
