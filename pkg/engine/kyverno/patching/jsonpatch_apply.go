package patching

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/go-openapi/jsonpointer"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// Apply applies the operations in order, all or none. It returns the given map, which is not modified, if
// nothing changed, and else a map that shares all untouched parts with it. If nothing changed, why has each
// operation's reason, or that they undo each other; it may be nil. The error is an *OperationError or, for
// old patches, joins one for each operation that fails.
func (p JSONPatch) Apply(c *limit.Clock, doc map[string]any, why *engine.Reasons) (map[string]any, error) {
	current, wrote := doc, false
	var errs []error
	for i, o := range p.operations {
		next, err := o.apply(current, p.old)
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
		if err := c.Step(); err != nil {
			return doc, err
		}
		current = next
	}
	if len(p.operations) == 0 {
		why.Add("the patch has no operations")
	}
	if wrote && len(p.operations) > 1 { // nobody reads them otherwise
		why.Add("the operations revert each other")
	}
	if len(errs) == 0 && !diff.Same(current, doc) {
		return current, nil
	}
	return doc, engine.JoinErrors(errs)
}

func (o operation) idle() string {
	switch o.op {
	case opRemove:
		return "there is no such path; nothing to remove"
	case opTest:
		return "the test passes, and changes nothing"
	}
	return "the object holds this value already"
}

// apply applies one operation. The library gets only the list or the map field in which the path ends:
// encoding whole objects would dominate the cost.
func (o operation) apply(doc map[string]any, old bool) (map[string]any, error) {
	node, depth := any(doc), 0
	for o.from == nil && depth+1 < len(o.to) {
		child, rest := reach(node, o.to[depth:depth+1])
		if len(rest) > 0 || !isContainer(child) {
			break
		}
		node, depth = child, depth+1
	}
	part, fields := node, map[string]any(nil)
	if all, isMap := node.(map[string]any); isMap && len(o.to) > depth && (o.from == nil || len(o.from) > 0) {
		fields = maps.Clone(all)
		named := map[string]any{}
		for _, path := range [][]string{o.to[depth:], o.from} {
			if len(path) == 0 {
				continue
			}
			if value, ok := fields[path[0]]; ok {
				named[path[0]] = value
				delete(fields, path[0])
			}
		}
		part = named
	}
	patch, err := o.encode(doc, depth, old)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(part)
	if err == nil {
		raw, err = patch.ApplyWithOptions(raw, &jsonpatch.ApplyOptions{ // as in Kyverno 1.19
			SupportNegativeIndices: true, AllowMissingPathOnRemove: true, EnsurePathExistsOnAdd: true,
		})
	}
	if err != nil {
		return nil, o.explain(doc, err)
	}
	if err := limit.Size(len(raw)); err != nil { // copying an object into itself doubles it each time
		return nil, err
	}
	var patched any
	if err := utiljson.Unmarshal(raw, &patched); err != nil {
		return nil, err
	}
	if edited, isMap := patched.(map[string]any); isMap {
		maps.Copy(edited, fields)
	}
	return put(doc, o.to[:depth], patched).(map[string]any), nil
}

// isContainer reports whether a path can lead through the value.
func isContainer(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// put returns the node with a new value at a path below it.
func put(node any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	child, _ := reach(node, path[:1])
	child = put(child, path[1:], value)
	if fields, isMap := node.(map[string]any); isMap {
		return diff.With(fields, path[0], child)
	}
	list := slices.Clone(node.([]any))
	i, _ := position(list, path[0])
	list[i] = child
	return list
}

// encode returns the operation for the library, without the first tokens of its path: a replace of a missing
// value adds it, and an old patch inserts a list's elements one by one.
func (o operation) encode(doc map[string]any, depth int, old bool) (jsonpatch.Patch, error) {
	op, values := o.op, []any{o.value}
	value, rest := reach(doc, o.to)
	list, isList := value.([]any)
	if op == opReplace && len(rest) > 0 {
		if len(rest) == 1 && isList && rest[0] != "-" && rest[0] != strconv.Itoa(len(list)) {
			return nil, unreachable(value, rest) // add would insert
		}
		op = opAdd
	}
	for i, token := range rest {
		n, _ := strconv.Atoi(token)
		if op == opAdd && n > len(list)+maxPadding && (isList || i > 0) { // an add creates lists
			return nil, fmt.Errorf("index %d is far beyond the end of the list, which has %d elements", n, len(list))
		}
	}
	if items, isList := o.value.([]any); old && isList && o.op == opAdd {
		last := o.to[len(o.to)-1]
		parent, missing := reach(doc, o.to[:len(o.to)-1])
		_, inList := parent.([]any)
		i, err := strconv.Atoi(last)
		if (inList || len(missing) > 0) && (err == nil || last == "-") {
			values = slices.Clone(items)
		}
		if len(values) > 1 && err == nil && i >= 0 { // each is inserted before the previous ones
			slices.Reverse(values)
		}
	}
	out := make(jsonpatch.Patch, len(values))
	for i, v := range values {
		fields := map[string]any{"op": op, "path": pointer(o.to[depth:]), "value": v}
		if o.from != nil {
			fields["from"] = pointer(o.from)
		}
		out[i] = jsonpatch.Operation{}
		for name, field := range fields {
			raw, err := json.Marshal(field)
			if err != nil {
				return nil, err
			}
			out[i][name] = (*json.RawMessage)(&raw)
		}
	}
	return out, nil
}

func pointer(path []string) string {
	var b strings.Builder
	for _, token := range path {
		b.WriteString("/" + jsonpointer.Escape(token))
	}
	return b.String()
}

// maxPadding bounds the nulls that an index can add to a list.
const maxPadding = 1000

func (o operation) explain(doc map[string]any, err error) error {
	if value, rest := reach(doc, o.from); len(rest) > 0 {
		return fmt.Errorf("from: %w", unreachable(value, rest))
	}
	if value, rest := reach(doc, o.to); len(rest) > 0 {
		return unreachable(value, rest)
	}
	if errors.Is(err, jsonpatch.ErrTestFailed) {
		return errors.New("the object holds another value there")
	}
	return err
}

// reach follows a path to its end, or to the last existing value with the rest of the path.
func reach(value any, path []string) (any, []string) {
	for i, token := range path {
		var child any
		var ok bool
		switch v := value.(type) {
		case map[string]any:
			child, ok = v[token]
		case []any:
			var n int
			if n, ok = position(v, token); ok {
				child = v[n]
			}
		}
		if !ok {
			return value, path[i:]
		}
		value = child
	}
	return value, nil
}

// position returns the index of an element, counting negative ones from the end, and whether it exists.
func position(list []any, token string) (int, bool) {
	i, err := strconv.Atoi(token)
	if i < 0 {
		i += len(list)
	}
	return i, err == nil && i >= 0 && i < len(list)
}

// unreachable returns why a path ends at a value.
func unreachable(value any, rest []string) error {
	switch v := value.(type) {
	case map[string]any:
		return errors.New("there is no such path in the object")
	case []any:
		if _, err := strconv.Atoi(rest[0]); err != nil {
			return fmt.Errorf("%q is not a list index", rest[0])
		}
		return fmt.Errorf("index %s is out of range: the list has %d elements", rest[0], len(v))
	}
	return fmt.Errorf("the parent of %q is neither a map nor a list", rest[0])
}
