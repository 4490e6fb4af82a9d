package diff

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-openapi/jsonpointer"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Pointers finds the JSON pointers of many paths in one object, and what they lead to. It searches each list
// once, where Pointer searches it once for each path. The object must not be
// modified meanwhile. It is not safe for concurrent use.
type Pointers struct {
	object any
	lists  map[listID]map[string][]int
}

// listID is a list of the object, and the field that identifies its elements.
type listID struct{ pointer, field string }

// PointersIn returns the Pointers of an object.
func PointersIn(object any) *Pointers {
	return &Pointers{object: object, lists: map[listID]map[string][]int{}}
}

// Of is Pointer for a path in the object.
func (p *Pointers) Of(path fieldpath.Path) (string, bool) {
	at := p.object
	var b strings.Builder
	for i, e := range path {
		token, next, ok := p.step(b.String(), at, e)
		if !ok && (e.FieldName == nil || i < len(path)-1) {
			return "", false
		}
		b.WriteByte('/')
		b.WriteString(jsonpointer.Escape(token))
		at = next
	}
	return b.String(), true
}

// Step returns the value that an element of a path names in the value at a pointer, the pointer to it, and its index
// where it is in a list.
func (p *Pointers) Step(pointer string, v any, e fieldpath.PathElement) (next string, index int, below any, ok bool) {
	token, below, ok := p.step(pointer, v, e)
	if e.FieldName == nil && ok {
		index, _ = strconv.Atoi(token) // a token of step
	}
	return pointer + "/" + jsonpointer.Escape(token), index, below, ok
}

// step is like the function step, for the value at a pointer.
func (p *Pointers) step(pointer string, v any, e fieldpath.PathElement) (token string, next any, ok bool) {
	list, isList := v.([]any)
	if !isList || e.FieldName != nil || e.Index != nil {
		return step(v, e)
	}
	i := p.index(pointer, list, e)
	if i < 0 {
		return "", nil, false
	}
	return strconv.Itoa(i), list[i], true
}

// index is like the function Index, for the list at a pointer and an element that is not named by its index.
func (p *Pointers) index(pointer string, list []any, e fieldpath.PathElement) int {
	places := p.places(pointer, list, e)
	few := make([]any, len(places))
	for i, place := range places {
		few[i] = list[place]
	}
	if i := Index(few, e); i >= 0 {
		return places[i]
	}
	return -1
}

// places returns the indices of the elements that a path element may name: all that it
// does name, and perhaps others.
func (p *Pointers) places(pointer string, list []any, e fieldpath.PathElement) []int {
	id := listID{pointer: pointer}
	var wanted value.Value
	switch {
	case e.Value != nil:
		wanted = *e.Value
	case e.Key != nil && len(*e.Key) > 0:
		id.field, wanted = (*e.Key)[0].Name, (*e.Key)[0].Value
	default:
		return nil
	}
	index, ok := p.lists[id]
	if !ok {
		index = indexBy(id.field, list)
		p.lists[id] = index
	}
	if id.field == "" {
		return index[likeness(wanted)]
	}
	// What lacks the field had its default when the path was made.
	return slices.Concat(index[lacking], index[likeness(wanted)])
}

// lacking is the likeness of what is not there.
const lacking = ""

// indexBy is the places of a list's elements by their likeness in a field, or by their
// own where there is no field.
func indexBy(field string, list []any) map[string][]int {
	out := make(map[string][]int, len(list))
	for i, item := range list {
		text := lacking
		if field == "" {
			text = likeness(value.NewValueInterface(item))
		} else if m, ok := item.(map[string]any); ok {
			if v, ok := m[field]; ok {
				text = likeness(value.NewValueInterface(v))
			}
		}
		out[text] = append(out[text], i)
	}
	return out
}

// likeness is the same for values that are equal. It may be the same for others.
func likeness(v value.Value) string {
	switch {
	case v.IsString():
		return "s" + v.AsString()
	case v.IsInt():
		return numberLikeness(float64(v.AsInt()))
	case v.IsFloat():
		return numberLikeness(v.AsFloat())
	}
	return "other"
}

func numberLikeness(f float64) string {
	return "n" + strconv.FormatFloat(f+0, 'g', -1, 64) // -0 equals 0, and so does the sum
}
