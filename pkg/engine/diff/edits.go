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

// EditOp is what an Edit does: an operation of a JSON patch.
type EditOp string

// The operations.
const (
	OpAdd     EditOp = "add"
	OpReplace EditOp = "replace"
	OpRemove  EditOp = "remove"
)

// Edit is one step that turns a state of an object into another one. In JSON it is
// an operation of a JSON patch (RFC 6902).
type Edit struct {
	Op EditOp
	// Path is made of field names and indices. These count in the object as the
	// edits before have left it.
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

// Edits returns the steps of a small JSON patch that turns one object into the
// other, in path order. Unlike Compare it knows no types: what the server may read
// as the same is edited all the same. The list is never nil: no edits are an empty
// patch.
func Edits(before, after map[string]any) []Edit {
	return append([]Edit{}, (&editor{}).values(nil, before, after)...)
}

// EditsWithin is Edits within a limit, if need be by replacing whole subtrees in
// which there are many. Where that is not enough, ok is false and the edits are all
// that there would be.
func EditsWithin(before, after map[string]any, limit int) (edits []Edit, ok bool) {
	all := Edits(before, after)
	bounded := all
	for perSubtree := limit; len(bounded) > limit; perSubtree /= 2 {
		if perSubtree == 0 {
			return all, false
		}
		bounded = (&editor{limit: perSubtree}).values(nil, before, after)
	}
	return bounded, true
}

// editor walks two values side by side.
type editor struct {
	limit int // edits in one subtree before it is replaced whole; 0: no limit
}

func (e *editor) values(at fieldpath.Path, a, b any) []Edit {
	var out []Edit
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			return []Edit{{OpReplace, at, b}}
		}
		out = e.maps(at, x, y)
	case []any:
		y, ok := b.([]any)
		if !ok {
			return []Edit{{OpReplace, at, b}}
		}
		out = e.lists(at, x, y)
	default:
		if Same(a, b) {
			return nil
		}
		return []Edit{{OpReplace, at, b}}
	}
	if e.limit > 0 && len(out) > e.limit && replaceable(at) {
		return []Edit{{OpReplace, at, b}}
	}
	return out
}

// replaceable reports whether a path may be replaced whole: neither the object
// nor its metadata, which holds what only the server may set.
func replaceable(at fieldpath.Path) bool {
	return len(at) > 1 || len(at) == 1 && *at[0].FieldName != "metadata"
}

func (e *editor) maps(at fieldpath.Path, a, b map[string]any) []Edit {
	var out []Edit
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
			out = append(out, e.values(field(at, k), x, y)...)
		}
	}
	return out
}

// lists leaves alone what is equal at both ends, pairs what is between by
// position, and then removes or adds the rest.
func (e *editor) lists(at fieldpath.Path, a, b []any) []Edit {
	head := 0
	for head < min(len(a), len(b)) && Same(a[head], b[head]) {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && Same(a[len(a)-1-tail], b[len(b)-1-tail]) {
		tail++
	}
	endA, endB := len(a)-tail, len(b)-tail
	paired := min(endA, endB)
	var out []Edit
	for i := head; i < paired; i++ {
		out = append(out, e.values(index(at, i), a[i], b[i])...)
	}
	for i := endA - 1; i >= paired; i-- {
		out = append(out, Edit{Op: OpRemove, Path: index(at, i)})
	}
	for i := paired; i < endB; i++ {
		out = append(out, Edit{OpAdd, index(at, i), b[i]})
	}
	return out
}
