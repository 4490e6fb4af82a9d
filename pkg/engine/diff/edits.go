package diff

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-openapi/jsonpointer"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// EditOp is the operation of an Edit, as in a JSON patch.
type EditOp string

// The operations.
const (
	OpAdd     EditOp = "add"
	OpReplace EditOp = "replace"
	OpRemove  EditOp = "remove"
)

// Edit is one step from one state of an object to another. In JSON it is an operation of a JSON patch (RFC
// 6902).
type Edit struct {
	Op EditOp
	// Path has field names and indices. Indices count in the object as left by earlier edits.
	Path  fieldpath.Path
	Value any // nil for OpRemove
}

// Pointer returns the path as a JSON pointer (RFC 6901).
func (e Edit) Pointer() string {
	var b strings.Builder
	for _, p := range e.Path {
		b.WriteByte('/')
		if p.Index != nil {
			b.WriteString(strconv.Itoa(*p.Index))
			continue
		}
		b.WriteString(jsonpointer.Escape(*p.FieldName))
	}
	return b.String()
}

// MarshalJSON writes a null value, but no value of a removal.
func (e Edit) MarshalJSON() ([]byte, error) {
	if e.Op == OpRemove {
		return json.Marshal(map[string]any{"op": e.Op, "path": e.Pointer()})
	}
	return json.Marshal(struct {
		Op    EditOp `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}{e.Op, e.Pointer(), e.Value})
}

// Edits returns a small JSON patch from one object to the other, in path order. Unlike Compare it knows no
// types: values that the server may read alike are edited all the same. The list is never nil: no edits are
// an empty patch.
func Edits(before, after map[string]any) []Edit {
	return append([]Edit{}, editMaps(nil, before, after)...)
}

// editValues walks two values side by side.
func editValues(at fieldpath.Path, a, b any) []Edit {
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			return editMaps(at, x, y)
		}
	case []any:
		if y, ok := b.([]any); ok {
			return editLists(at, x, y)
		}
	}
	if Same(a, b) {
		return nil
	}
	return []Edit{{OpReplace, at, b}}
}

func editMaps(at fieldpath.Path, a, b map[string]any) (out []Edit) {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(all)
	for _, k := range slices.Compact(all) {
		x, inA := a[k]
		y, inB := b[k]
		switch {
		case !inB:
			out = append(out, Edit{Op: OpRemove, Path: field(at, k)})
		case !inA:
			out = append(out, Edit{OpAdd, field(at, k), y})
		case !Same(x, y):
			out = append(out, editValues(field(at, k), x, y)...)
		}
	}
	return out
}

// editLists keeps equal elements at both ends, pairs the others by position, and removes or adds the rest.
func editLists(at fieldpath.Path, a, b []any) (out []Edit) {
	head, tail := ends(a, b, Same)
	endA, endB := len(a)-tail, len(b)-tail
	paired := min(endA, endB)
	for i := head; i < paired; i++ {
		out = append(out, editValues(index(at, i), a[i], b[i])...)
	}
	for i := endA - 1; i >= paired; i-- {
		out = append(out, Edit{Op: OpRemove, Path: index(at, i)})
	}
	for i := paired; i < endB; i++ {
		out = append(out, Edit{OpAdd, index(at, i), b[i]})
	}
	return out
}
