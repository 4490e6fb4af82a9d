package cel

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-openapi/jsonpointer"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Checked is what is known of an object that mutations change one after the other: that all of it
// fits its schema, and how long its JSON is. They then read what they name alone, so that many of
// them take linear time. The zero value knows nothing. It is for one object, and one goroutine.
type Checked struct {
	object map[string]any
	size   int // steps to read what fits its schema, when all of it was read
	grown  int // and what was written since, replaced or not
	bytes  int // of JSON, at most; 0 where that is not known
	// parts are what JSON patches have made since, which may not fit its schema.
	parts []map[string]any
}

// of makes it what is known of a state of the object.
func (c *Checked) of(object map[string]any) *Checked {
	if c == nil || c.object == nil || !engine.Identical(c.object, object) {
		return &Checked{}
	}
	return c
}

// remember takes over what is known.
func (c *Checked) remember(known *Checked) {
	if c != nil {
		*c = *known
	}
}

// fits reports whether the object need not be read again to see whether it fits its schema. It
// is, after it has doubled, since values may share so much that they grow without taking memory.
func (c *Checked) fits() bool { return c.size > 0 && c.grown <= c.size }

// fitsAs is fits, for which it reads what JSON patches have made.
func (c *Checked) fitsAs(types managedfields.TypeConverter) bool {
	return c.fits() && !slices.ContainsFunc(c.parts, func(part map[string]any) bool {
		_, err := types.ObjectToTyped(asObject(part), typed.AllowDuplicates)
		return err != nil // or it did not, before another patch
	})
}

// patched is what is known of a state that a JSON patch made, and how much of it was written; nil
// for all of it.
func (c *Checked) patched(object map[string]any, bytes int, part map[string]any, written size) Checked {
	next := Checked{object: object, bytes: bytes}
	if part != nil && c.fits() {
		next.size, next.grown, next.parts = c.size, c.grown+written.steps(), append(c.parts, part)
	}
	return next
}

// merged remembers a state that an apply configuration made, after so many steps of reading where
// all was read.
func (c *Checked) merged(was *Checked, object map[string]any, read int, written size) {
	if c == nil {
		return
	}
	next := Checked{object: object, size: read + written.steps(), bytes: was.bytes}
	if read == 0 {
		next.size, next.grown = was.size, was.grown+written.steps()
	}
	if next.bytes > 0 {
		next.bytes += written.json()
	}
	*c = next
}

// bytesOfJSON is what a value, and a byte of text, takes in JSON, at most.
const bytesOfJSON = 32

// json is how many bytes of JSON there are, at most.
func (s size) json() int { return bytesOfJSON * (s.values + s.bytes) }

// narrowing relates an object to an apply configuration, in maps of which a merge takes each field
// by itself. It leaves alone what the configuration does not name.
type narrowing struct {
	schema *schema.Schema
	draft  *engine.Draft
}

// enters reports whether a merge takes each field of a value by itself.
func (n narrowing) enters(ref schema.TypeRef, live, patch any) (of *schema.Map, from, by map[string]any, ok bool) {
	atom, known := n.schema.Resolve(ref)
	from, isMap := live.(map[string]any)
	by, isPatch := patch.(map[string]any)
	if !known || atom.Map == nil || atom.Map.ElementRelationship == schema.Atomic || !isMap || !isPatch {
		return nil, nil, nil, false
	}
	return atom.Map, from, by, true
}

func typeOf(m *schema.Map, name string) schema.TypeRef {
	if field, ok := m.FindField(name); ok {
		return field.Type
	}
	return m.ElementType
}

// adds reports whether all that a merge does to a list is to append elements.
func (n narrowing) adds(ref schema.TypeRef, live, patch any) (to, elements []any, ok bool) {
	atom, known := n.schema.Resolve(ref)
	to, isList := live.([]any)
	elements, isPatch := patch.([]any)
	if !known || atom.List == nil || atom.List.ElementRelationship != schema.Associative || !isList || !isPatch || len(elements) == 0 {
		return nil, nil, false
	}
	return to, elements, !slices.ContainsFunc(elements, func(e any) bool { return !n.isNew(atom.List.Keys, to, e) })
}

// finds reports whether all that a merge does to a list is to find the one element of the patch.
func (n narrowing) finds(ref schema.TypeRef, live, patch any) bool {
	atom, known := n.schema.Resolve(ref)
	list, isList := live.([]any)
	elements, isPatch := patch.([]any)
	if !known || atom.List == nil || atom.List.ElementRelationship != schema.Associative || len(atom.List.Keys) > 0 || !isList || !isPatch || len(elements) != 1 {
		return false
	}
	text, isText := elements[0].(string)
	return isText && slices.Contains(list, any(text))
}

// isNew reports whether an element is certainly none of those of a list.
func (n narrowing) isNew(keys []string, list []any, element any) bool {
	if len(keys) == 0 {
		return n.draft.Lacks(list, "", element)
	}
	m, _ := element.(map[string]any)
	return slices.ContainsFunc(keys, func(key string) bool { // one that is missing may have a default
		return m[key] != nil && n.draft.Lacks(list, key, m[key]) && n.draft.Lacks(list, key, nil)
	})
}

// part returns what of a live value decides what a merge makes of it.
func (n narrowing) part(ref schema.TypeRef, live, patch any) any {
	if _, _, ok := n.adds(ref, live, patch); ok {
		return []any{}
	}
	if n.finds(ref, live, patch) {
		return patch
	}
	of, from, by, ok := n.enters(ref, live, patch)
	if !ok {
		return live
	}
	out := make(map[string]any, len(by))
	for name, value := range by {
		if was, there := from[name]; there {
			out[name] = n.part(typeOf(of, name), was, value)
		}
	}
	return out
}

// put puts what a merge made of a part in its place in the live value, which it was a part of.
func (n narrowing) put(ref schema.TypeRef, live, patch, merged any) any {
	if list, _, ok := n.adds(ref, live, patch); ok {
		if added, isList := merged.([]any); isList {
			return n.draft.Append(list, added...)
		}
	}
	if n.finds(ref, live, patch) {
		return live
	}
	of, from, by, ok := n.enters(ref, live, patch)
	made, isMap := merged.(map[string]any)
	if !ok || !isMap {
		return merged
	}
	out := from
	for name := range by {
		value, there := made[name]
		if !there {
			continue
		}
		sets := n.draft.Sets()
		value = n.put(typeOf(of, name), from[name], by[name], value)
		if n.draft.Sets() > sets || !reflect.DeepEqual(from[name], value) {
			out = n.draft.Set(out, name, value)
		}
	}
	return out
}

// touched are the places of an object that a JSON patch reads or writes: the whole of it where no
// fields are given.
type touched map[string]touched

// touchedBy returns the places that are named by JSON pointers, as the library reads them.
func touchedBy(pointers []string) touched {
	root := touched{}
	for _, pointer := range pointers {
		tokens := strings.Split(pointer, "/")
		if len(tokens) < 2 {
			return nil
		}
		at := root
		for i, token := range tokens[1:] {
			token = jsonpointer.Unescape(token)
			below, known := at[token]
			switch {
			case known && below == nil, i == len(tokens)-2:
				at[token] = nil
			case !known:
				below = touched{}
				at[token] = below
			}
			if at[token] == nil {
				break
			}
			at = below
		}
	}
	return root
}

// adds reports whether all that may be done to a list is to append elements.
func (t touched) adds() bool {
	below, ok := t["-"]
	return ok && below == nil && len(t) == 1
}

// within returns the indices of the elements of a list that the patch reads or writes parts of, in order; none where
// it may do more to the list than that.
func (t touched) within(list []any) []int {
	var out []int
	for token, below := range t {
		i, err := strconv.Atoi(token)
		if err != nil || below == nil || i < 0 || i >= len(list) || strconv.Itoa(i) != token {
			return nil
		}
		out = append(out, i)
	}
	slices.Sort(out)
	return out
}

// element is what is below an index of a list.
func (t touched) element(i int) touched { return t[strconv.Itoa(i)] }

// part returns what of a live value the patch reads or writes. In a list of which it is about some elements, the others are nil.
func (t touched) part(live any) any {
	if t == nil {
		return live
	}
	switch live := live.(type) {
	case map[string]any:
		out := make(map[string]any, len(t))
		for name, below := range t {
			if value, there := live[name]; there {
				out[name] = below.part(value)
			}
		}
		return out
	case []any:
		if t.adds() {
			return []any{}
		}
		if at := t.within(live); len(at) > 0 {
			out := make([]any, len(live))
			for _, i := range at {
				out[i] = t.element(i).part(live[i])
			}
			return out
		}
	}
	return live
}

// checked returns what a patch has made of a part, and with it what of the whole a schema needs to tell its elements apart:
// elements without their keys, or nil in place of others, fit none.
func (t touched) checked(made, whole any) any {
	if t == nil {
		return made
	}
	switch made := made.(type) {
	case map[string]any:
		of, _ := whole.(map[string]any)
		out := maps.Clone(made)
		for name, below := range t {
			if value, there := made[name]; there {
				out[name] = below.checked(value, of[name])
			}
		}
		return out
	case []any:
		of, _ := whole.([]any)
		at := t.within(of)
		if len(at) == 0 {
			return made
		}
		out := make([]any, len(at))
		for j, i := range at {
			out[j] = withScalars(t.element(i).checked(made[i], of[i]), of[i])
		}
		return out
	}
	return made
}

// withScalars adds the fields of a map that are no maps or lists.
func withScalars(part, whole any) any {
	to, isMap := part.(map[string]any)
	of, _ := whole.(map[string]any)
	if !isMap {
		return part
	}
	for name, value := range of {
		switch value.(type) {
		case map[string]any, []any:
		default:
			to[name] = value
		}
	}
	return part
}

// putting puts what a patch made of a part of an object in its place. Maps is nil for what is in a list, of which a draft
// copies the maps always.
type putting struct{ maps, lists *engine.Draft }

// put returns the live value, which it was a part of, with what the patch made of it.
func (p putting) put(t touched, live, made any) any {
	if t == nil {
		return made
	}
	switch from := live.(type) {
	case map[string]any:
		if to, ok := made.(map[string]any); ok {
			return p.fields(t, from, to)
		}
	case []any:
		if to, ok := made.([]any); ok {
			return p.elements(t, from, to)
		}
	}
	return made
}

func (p putting) fields(t touched, from, to map[string]any) map[string]any {
	out := from
	for name, below := range t {
		was, had := from[name]
		value, has := to[name]
		switch {
		case !has && had:
			out = p.maps.Delete(out, name)
		case has && !had:
			out = p.maps.Set(out, name, value)
		case has:
			sets := p.maps.Sets()
			if value = p.put(below, was, value); p.maps.Sets() > sets || !reflect.DeepEqual(was, value) {
				out = p.maps.Set(out, name, value)
			}
		}
	}
	return out
}

func (p putting) elements(t touched, from, to []any) []any {
	if t.adds() {
		if len(to) == 0 {
			return from
		}
		return p.lists.Append(from, to...)
	}
	at := t.within(from)
	if len(at) == 0 || len(to) != len(from) {
		return to
	}
	out := slices.Clone(from)
	for _, i := range at {
		out[i] = putting{lists: p.lists}.put(t.element(i), from[i], to[i])
	}
	return out
}
