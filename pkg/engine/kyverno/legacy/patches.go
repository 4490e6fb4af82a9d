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

// operation is an operation as a JSON patch.
type operation struct {
	patch   jsonpatch.Patch
	removes bool
	// spread adds the elements of a list one after the other; it is for an add of a list at what may be an index of
	// what is at above.
	spread *jsonpatch.Patch
	above  string
}

// ParsePatches reads the value of mutate.patches. The error joins a
// *jsonpatch.OperationError for each operation that cannot be read.
func ParsePatches(list []any) (Patches, error) {
	var p Patches
	var errs []error
	for i, element := range list {
		fields, _ := element.(map[string]any)
		// A lone slash is no path to the whole object, but a mistake.
		if path, isText := fields["path"].(string); isText && path != "/" {
			fields = maps.Clone(fields)
			fields["path"] = strings.TrimSuffix(path, "/")
			element = fields
		}
		o, err := parseOperation(element, fields)
		if err != nil {
			errs = append(errs, numbered(err, i))
			continue
		}
		p.operations = append(p.operations, o)
	}
	return p, engine.JoinErrors(errs)
}

func parseOperation(element any, fields map[string]any) (o operation, err error) {
	if o.patch, err = jsonpatch.Decode([]any{element}); err != nil {
		return o, err
	}
	op, path := fields["op"].(string), fields["path"].(string)
	switch op {
	case "add", "replace", "remove":
		o.removes = op == "remove"
	default:
		return o, &jsonpatch.OperationError{Op: op, Path: path, Err: errors.New("the operations of patches are add, replace and remove")}
	}
	items, isList := fields["value"].([]any)
	slash := strings.LastIndexByte(path, '/')
	first, err := strconv.Atoi(path[slash+1:])
	if op != "add" || !isList || slash < 0 || err != nil && path[slash+1:] != "-" {
		return o, nil
	}
	// "-" and negative indices count from the end, which each element moves on.
	inserts := make([]any, len(items))
	for i, item := range items {
		at := path
		if err == nil && first >= 0 {
			at = path[:slash+1] + strconv.Itoa(first+i)
		}
		inserts[i] = map[string]any{"op": "add", "path": at, "value": item}
	}
	spread, err := jsonpatch.Decode(inserts)
	o.spread, o.above = &spread, path[:slash]
	return o, err
}

// numbered gives the error of a patch with one operation its place in the list.
func numbered(err error, index int) error {
	var one *jsonpatch.OperationError
	if !errors.As(err, &one) {
		return err
	}
	return &jsonpatch.OperationError{Index: index, Op: one.Op, Path: one.Path, Err: one.Err}
}

// Apply returns the object with the operations applied: the very map that it was
// given where nothing changed, and then why, which may be nil, holds the reasons. An
// operation that fails does not keep the others from being tried, so that the error
// joins those of all; the object is then as it was. A remove never fails.
func (p Patches) Apply(c *limit.Clock, object map[string]any, why *engine.Reasons) (map[string]any, error) {
	out := object
	var errs []error
	for i, o := range p.operations {
		patch := o.patch
		if o.spread != nil {
			parent, _ := jsonpatch.Find(out, o.above)        // nil where the path leads nowhere
			if _, isMap := parent.(map[string]any); !isMap { // or else what looks like an index is a key
				patch = *o.spread
			}
		}
		next, err := patch.Apply(c, out, why)
		switch {
		case err == nil:
			out = next
		case o.removes:
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
