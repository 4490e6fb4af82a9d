package request

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// maxOperations is the API server's limit for one JSON patch; more are a 413.
const maxOperations = 10_000

const (
	opAdd     = "add"
	opReplace = "replace"
	opRemove  = "remove"
)

// Operation is one step of a JSON patch (RFC 6902).
type Operation struct {
	Op    string // "add", "replace" or "remove"
	Path  string // a JSON pointer (RFC 6901)
	Value any    // not part of a "remove"
}

// MarshalJSON writes a null value, but no value of a removal.
func (o Operation) MarshalJSON() ([]byte, error) {
	if o.Op == opRemove {
		return json.Marshal(map[string]any{"op": o.Op, "path": o.Path})
	}
	return json.Marshal(struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}{o.Op, o.Path, o.Value})
}

// Operations lists the steps of a small JSON patch that turns one object into
// the other, in path order. Indices count in the object as the steps before
// have left it.
func Operations(before, after map[string]any) []Operation {
	return operations(edits(before, after))
}

func operations(edits []edit) []Operation {
	out := make([]Operation, len(edits))
	for i, e := range edits {
		out[i] = Operation{Op: e.op, Path: pointer(e.path), Value: e.value}
	}
	return out
}

// edit is an operation whose path can still be walked.
type edit struct {
	op    string
	path  fieldpath.Path // of field names and indices
	value any
}

func edits(before, after map[string]any) []edit {
	return (&differ{}).values(nil, before, after)
}

// boundedEdits keeps within a number of operations, if need be by replacing
// whole subtrees in which there are many.
func boundedEdits(before, after map[string]any, limit int) ([]edit, error) {
	all := edits(before, after)
	bounded := all
	for perSubtree := limit; len(bounded) > limit; perSubtree /= 2 {
		if perSubtree == 0 {
			return nil, &TooManyOperationsError{Operations: len(all) + 1}
		}
		bounded = (&differ{limit: perSubtree}).values(nil, before, after)
	}
	return bounded, nil
}

// differ walks two values side by side.
type differ struct {
	limit int // edits in one subtree before it is replaced whole; 0: no limit
}

func (d *differ) values(at fieldpath.Path, a, b any) []edit {
	var out []edit
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			return []edit{{opReplace, at, b}}
		}
		out = d.maps(at, x, y)
	case []any:
		y, ok := b.([]any)
		if !ok {
			return []edit{{opReplace, at, b}}
		}
		out = d.lists(at, x, y)
	default:
		if equal(a, b) {
			return nil
		}
		return []edit{{opReplace, at, b}}
	}
	if d.limit > 0 && len(out) > d.limit && replaceable(at) {
		return []edit{{opReplace, at, b}}
	}
	return out
}

// replaceable tells whether a path may be replaced whole: neither the object
// nor its metadata, which holds what only the server may set.
func replaceable(at fieldpath.Path) bool {
	return len(at) > 1 || len(at) == 1 && *at[0].FieldName != "metadata"
}

func (d *differ) maps(at fieldpath.Path, a, b map[string]any) []edit {
	var out []edit
	for _, k := range unionOfKeys(a, b) {
		x, inA := a[k]
		y, inB := b[k]
		switch {
		case !inB:
			out = append(out, edit{op: opRemove, path: field(at, k)})
		case !inA:
			out = append(out, edit{opAdd, field(at, k), y})
		case !equal(x, y):
			out = append(out, d.values(field(at, k), x, y)...)
		}
	}
	return out
}

// lists leaves alone what is equal at both ends, pairs what is between by
// position, and then removes or adds the rest.
func (d *differ) lists(at fieldpath.Path, a, b []any) []edit {
	head := 0
	for head < min(len(a), len(b)) && equal(a[head], b[head]) {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && equal(a[len(a)-1-tail], b[len(b)-1-tail]) {
		tail++
	}
	endA, endB := len(a)-tail, len(b)-tail
	paired := min(endA, endB)
	var out []edit
	for i := head; i < paired; i++ {
		out = append(out, d.values(index(at, i), a[i], b[i])...)
	}
	for i := endA - 1; i >= paired; i-- {
		out = append(out, edit{op: opRemove, path: index(at, i)})
	}
	for i := paired; i < endB; i++ {
		out = append(out, edit{opAdd, index(at, i), b[i]})
	}
	return out
}

func unionOfKeys(a, b map[string]any) []string {
	keys := make([]string, 0, max(len(a), len(b)))
	for k := range a {
		keys = append(keys, k)
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

func field(at fieldpath.Path, name string) fieldpath.Path {
	return append(slices.Clip(at), fieldpath.PathElement{FieldName: &name})
}

func index(at fieldpath.Path, i int) fieldpath.Path {
	return append(slices.Clip(at), fieldpath.PathElement{Index: &i})
}

// pointer writes a path of field names and indices as a JSON pointer.
func pointer(p fieldpath.Path) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var b strings.Builder
	for _, e := range p {
		b.WriteByte('/')
		if e.Index != nil {
			b.WriteString(strconv.Itoa(*e.Index))
			continue
		}
		_, _ = escape.WriteString(&b, *e.FieldName)
	}
	return b.String()
}
