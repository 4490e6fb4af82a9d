package legacy

import (
	"cmp"
	"errors"
	"maps"
	"strconv"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jsonpatch"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// Patches are the operations of mutate.patches. The zero value changes nothing.
type Patches struct {
	operations []operation
}

// operation is an operation as it was written, and as a JSON patch. Spread marks an add of a list at what may be the index of another one.
type operation struct {
	fields map[string]any
	patch  jsonpatch.Patch
	spread bool
}

// ParsePatches reads the value of mutate.patches. The error joins a
// *jsonpatch.OperationError for each operation that cannot be read.
func ParsePatches(list []any) (Patches, error) {
	p := Patches{operations: make([]operation, 0, len(list))}
	var errs []error
	for i, element := range list {
		fields, ok := element.(map[string]any)
		// A lone slash is no path to the whole object, but a mistake.
		if path, isText := fields["path"].(string); ok && isText && path != "/" {
			fields = maps.Clone(fields)
			fields["path"] = strings.TrimSuffix(path, "/")
			element = fields
		}
		patch, err := jsonpatch.Decode([]any{element})
		if err == nil {
			err = checkOperation(fields)
		}
		if err != nil {
			errs = append(errs, numbered(err, i))
			continue
		}
		p.operations = append(p.operations, operation{fields: fields, patch: patch, spread: addsList(fields)})
	}
	return p, engine.JoinErrors(errs)
}

// checkOperation refuses what a JSON patch has and mutate.patches had not.
func checkOperation(fields map[string]any) error {
	op, _ := fields["op"].(string)
	switch op {
	case "add", "replace", "remove":
		return nil
	}
	path, _ := fields["path"].(string)
	return &jsonpatch.OperationError{Op: op, Path: path, Err: errors.New("the operations of patches are add, replace and remove")}
}

// numbered gives the error of a patch with one operation its place in the list.
func numbered(err error, index int) error {
	var one *jsonpatch.OperationError
	if !errors.As(err, &one) {
		return err
	}
	return &jsonpatch.OperationError{Index: index, Op: one.Op, Path: one.Path, Err: one.Err}
}

func addsList(fields map[string]any) bool {
	_, isList := fields["value"].([]any)
	_, last := splitPath(fields)
	if fields["op"] != "add" || !isList || last == "" {
		return false
	}
	_, err := strconv.Atoi(last)
	return last == "-" || err == nil
}

// Apply returns the object with the operations applied: the very map that it was
// given where nothing changed, and then why, which may be nil, holds the reasons. An
// operation that fails does not keep the others from being tried, so that the error
// joins those of all; the object is then as it was. A remove never fails.
func (p Patches) Apply(c *limit.Clock, object map[string]any, why *engine.Reasons) (map[string]any, error) {
	out := object
	var errs []error
	for i, o := range p.operations {
		next, err := o.apply(c, out, why)
		switch {
		case err == nil:
			out = next
		case o.fields["op"] == "remove":
			why.Add("%v", err)
		default:
			errs = append(errs, numbered(err, i))
		}
	}
	if len(errs) > 0 {
		return object, engine.JoinErrors(errs)
	}
	return out, nil
}

// NotIdempotent returns why applying the patches to their own result may change it
// again, as jsonpatch.Patch does.
func (p Patches) NotIdempotent() string {
	why := ""
	for _, o := range p.operations {
		why = cmp.Or(why, o.patch.NotIdempotent())
	}
	return why
}

func (o operation) apply(c *limit.Clock, object map[string]any, why *engine.Reasons) (map[string]any, error) {
	if !o.spread {
		return o.patch.Apply(c, object, why)
	}
	above, _ := splitPath(o.fields)
	parent, _ := jsonpatch.Find(object, above) // nil where the path leads nowhere
	if _, isMap := parent.(map[string]any); isMap {
		return o.patch.Apply(c, object, why) // what looks like an index is a key
	}
	patch, err := jsonpatch.Decode(o.inserts())
	if err != nil {
		return nil, err
	}
	return patch.Apply(c, object, why)
}

// inserts are operations that add the elements of the list one after the other.
// "-" and negative indices count from the end, which each element moves on.
func (o operation) inserts() []any {
	parent, last := splitPath(o.fields)
	first, err := strconv.Atoi(last)
	items, _ := o.fields["value"].([]any)
	out := make([]any, len(items))
	for i, item := range items {
		index := last
		if err == nil && first >= 0 {
			index = strconv.Itoa(first + i)
		}
		out[i] = map[string]any{"op": "add", "path": parent + "/" + index, "value": item}
	}
	return out
}

// splitPath returns the path of what an operation changes a part of, and the name of the part.
func splitPath(fields map[string]any) (parent, last string) {
	path, _ := fields["path"].(string)
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}
