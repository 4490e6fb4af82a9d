package engine

import (
	"maps"
	"slices"
	"unsafe"
)

// Draft lets a program change an object in place, step by step, as far as the object is its own:
// a map that it has copied for one step is not copied again for the next. Otherwise rules that
// all write to one map would take time by the square of their number. It never touches a map
// that it has not copied itself, and is for objects of maps: what is in lists is copied always,
// and the elements of a list stay as they are.
//
// A program sets fields through Set and Delete, from the innermost map to the root, also where
// they return the map that they were given. After each step it calls Take, Commit or Revert, and
// calls Freeze before anything may keep a part of the object. A nil Draft copies always. It
// belongs to one goroutine.
type Draft struct {
	// Compare lists what differs between two states of the object, of which the second may have
	// maps of the first, with Edits. It returns a *LimitError if that is more than may be listed.
	Compare func(before, after map[string]any) ([]FieldChange, error)
	// Kept is of the program's own choice: what it has read of a text of the object, for its next step.
	Kept any

	own   map[unsafe.Pointer]*ownMap
	lists map[*any]ownList // by their first element
	asked *any             // the first element of the list that it has not made in which something was last looked for
	given *any             // that of the one among these that is in lists
	taken []*ownMap        // those that this step has made or edited
	sets  int              // in this step
	texts []map[string]any // maps whose values are all texts
}

// ownMap is a map that a draft has made.
type ownMap struct {
	content map[string]any
	made    bool            // in this step, so that nobody has seen it before
	edited  map[string]bool // fields, of a map that was made before this step
	before  map[string]any  // their values before it; no entry for a field that was missing
}

// Set returns the map with a field set: the map itself where the draft has made it, else a copy.
func (d *Draft) Set(m map[string]any, name string, value any) map[string]any {
	before := m
	m = d.writable(m, name)
	m[name] = value
	d.keepTexts(before, m, value)
	return m
}

// Delete returns the map without a field, like Set.
func (d *Draft) Delete(m map[string]any, name string) map[string]any {
	before := m
	m = d.writable(m, name)
	delete(m, name)
	d.keepTexts(before, m, "")
	return m
}

// OfTexts reports whether all values of a map are texts. A draft looks once at a map and all that it makes of it, as
// long as it is asked about two of them in turn.
func (d *Draft) OfTexts(m map[string]any) bool {
	if d != nil && slices.ContainsFunc(d.texts, func(known map[string]any) bool { return identity(known) == identity(m) }) {
		return true
	}
	for _, value := range m {
		if !isText(value) {
			return false
		}
	}
	if d != nil && m != nil {
		d.texts = append(d.texts[max(0, len(d.texts)-1):], m)
	}
	return true
}

// keepTexts notes that a map has become another one, which has a value.
func (d *Draft) keepTexts(before, after map[string]any, value any) {
	if d == nil {
		return
	}
	for i, known := range d.texts {
		if identity(known) != identity(before) {
			continue
		}
		if d.texts[i] = after; !isText(value) {
			d.texts = slices.Delete(d.texts, i, i+1)
		}
		return
	}
}

// Owns reports whether Set copies nothing.
func (d *Draft) Owns(m map[string]any) bool { return d != nil && d.own[identity(m)] != nil }

// OwnsPartOf reports whether Set copies nothing for a map in a value.
func (d *Draft) OwnsPartOf(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		if d.Owns(v) {
			return true
		}
		for _, below := range v {
			if d.OwnsPartOf(below) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, d.OwnsPartOf)
	}
	return false
}

// ownList is a list that a draft has made, and nobody has seen more of; or one that it was given, and asked about often.
type ownList struct {
	room []any // with more before the list, or after it; nil where the draft has not made it
	from int   // where the list begins
	size int
	// values are those of a field of the elements, or of the elements themselves for no name, with the number of the first
	// element that has them; nil where one of them cannot be looked up.
	values map[string]map[any]int
	first  int // the number of the first element: those that come before it later have lower ones
}

// Append returns a list with more elements after its own. What has the list that it was given
// does not see them, even where both share memory.
func (d *Draft) Append(list []any, more ...any) []any { return d.extended(list, nil, more) }

// Prepend is Append for elements before those of the list.
func (d *Draft) Prepend(list []any, more ...any) []any { return d.extended(list, more, nil) }

func (d *Draft) extended(list, before, after []any) []any {
	size := len(before) + len(list) + len(after)
	if d == nil || size == 0 {
		return slices.Concat(before, list, after)
	}
	own, _ := d.known(list)
	from := own.from - len(before)
	if own.room == nil || from < 0 || from+size > len(own.room) {
		own.room, from = make([]any, 2*size), 0 // a half of it is for more where these came from
		if len(before) > 0 {
			from = size
		}
		copy(own.room[from+len(before):], list)
	}
	copy(own.room[from:], before)
	copy(own.room[from+size-len(after):], after)
	if len(list) > 0 {
		delete(d.lists, &list[0])
	}
	if d.lists == nil {
		d.lists = map[*any]ownList{}
	}
	last := own.first + len(list)
	own.first -= len(before)
	for name, values := range own.values {
		own.values[name] = withValues(withValues(values, name, before, own.first), name, after, last)
	}
	out := own.room[from : from+size : from+size]
	own.from, own.size = from, size
	d.lists[&out[0]] = own
	return out
}

// Knows reports whether the draft has made a list, or has been asked about it often enough to look elements up.
func (d *Draft) Knows(list []any) bool {
	_, known := d.known(list)
	return known
}

func (d *Draft) known(list []any) (own ownList, ok bool) {
	if d == nil || len(list) == 0 {
		return ownList{}, false
	}
	if own = d.lists[&list[0]]; own.size != len(list) {
		return ownList{}, false
	}
	return own, true
}

// Lacks reports whether no element of a list has a value in a field, or is the value where the name
// is empty; false where that is not certain.
func (d *Draft) Lacks(list []any, name string, value any) bool {
	i, certain := d.Find(list, name, value)
	return certain && i < 0
}

// Find returns the index of the first element of a list that has a value in a field, or is the value where the name
// is empty; -1 where none has. It is not certain for numbers of different types, among others. A field that is
// missing has the value nil. In a list that the draft has made, or is asked about again, it is looked up.
func (d *Draft) Find(list []any, name string, value any) (i int, certain bool) {
	if !canBeLookedUp(value) {
		return -1, len(list) == 0
	}
	own, known := d.known(list)
	if !known && !d.askedAgain(list) {
		i := slices.IndexFunc(list, func(element any) bool { return !certainlyDiffer(fieldOf(element, name), value) })
		return i, i < 0 || canBeLookedUp(fieldOf(list[i], name))
	}
	values, indexed := own.values[name]
	if !indexed {
		values = withValues(map[any]int{}, name, list, own.first)
		if own.values == nil {
			own.values = map[string]map[any]int{}
		}
		own.values[name], own.size = values, len(list)
		if d.lists == nil {
			d.lists = map[*any]ownList{}
		}
		d.lists[&list[0]] = own
	}
	number, found := values[value]
	if !found {
		return -1, values != nil
	}
	return number - own.first, true
}

// askedAgain reports whether something is looked for in a list again, and it is long enough to look it up. Of the lists
// that the draft has not made it is the one that is looked up from now on.
func (d *Draft) askedAgain(list []any) bool {
	const long = 16
	switch {
	case d == nil || len(list) < long:
		return false
	case d.asked != &list[0]:
		d.asked = &list[0]
		return false
	}
	if d.given != nil && d.lists[d.given].room == nil {
		delete(d.lists, d.given)
	}
	d.given = d.asked
	return true
}

// withValues adds elements, of which the first has a number.
func withValues(values map[any]int, name string, elements []any, number int) map[any]int {
	for i, element := range elements {
		value := fieldOf(element, name)
		if values == nil || !canBeLookedUp(value) {
			return nil
		}
		if known, twice := values[value]; !twice || number+i < known {
			values[value] = number + i
		}
	}
	return values
}

func fieldOf(element any, name string) any {
	if name == "" {
		return element
	}
	m, _ := element.(map[string]any)
	return m[name]
}

func certainlyDiffer(a, b any) bool { return canBeLookedUp(a) && canBeLookedUp(b) && a != b }

// canBeLookedUp reports whether a value is the same as another one only if Go says so.
func canBeLookedUp(value any) bool {
	switch value.(type) {
	case nil, string, int64, bool:
		return true
	}
	return false
}

func isText(value any) bool {
	_, ok := value.(string)
	return ok
}

func (d *Draft) writable(m map[string]any, name string) map[string]any {
	if d == nil {
		return copied(m)
	}
	d.sets++
	o := d.own[identity(m)]
	switch {
	case o == nil:
		o = &ownMap{content: copied(m), made: true}
		if d.own == nil {
			d.own = map[unsafe.Pointer]*ownMap{}
		}
		d.own[identity(o.content)] = o
		d.taken = append(d.taken, o)
	case o.made || o.edited[name]:
	default:
		if len(o.edited) == 0 {
			o.edited, o.before = map[string]bool{}, map[string]any{}
			d.taken = append(d.taken, o)
		}
		o.edited[name] = true
		if value, ok := m[name]; ok {
			o.before[name] = value
		}
	}
	return o.content
}

func copied(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return maps.Clone(m)
}

// Sets counts the calls of Set and Delete in this step.
func (d *Draft) Sets() int {
	if d == nil {
		return 0
	}
	return d.sets
}

// Edits returns the names of the fields of a map that this step has changed in place, and what they
// were before it; no names where there are none.
func (d *Draft) Edits(m map[string]any) (names map[string]bool, before map[string]any) {
	if d == nil {
		return nil, nil
	}
	if o := d.own[identity(m)]; o != nil {
		return o.edited, o.before
	}
	return nil, nil
}

// Was returns the value of a field before this step.
func (d *Draft) Was(m map[string]any, name string) any {
	if edited, before := d.Edits(m); edited[name] {
		return before[name]
	}
	return m[name]
}

// Take ends a step, and returns what it has changed, never nil; or the error of Compare, and then the step is to be
// reverted. The maps among these values are the draft's no longer.
func (d *Draft) Take(before, after map[string]any) ([]FieldChange, error) {
	fields, err := d.Compare(before, after)
	if err != nil {
		return nil, err
	}
	return d.Taken(fields), nil
}

// Taken is Take for a step whose changes are known.
func (d *Draft) Taken(fields []FieldChange) []FieldChange {
	if fields == nil {
		fields = []FieldChange{}
	}
	for _, f := range fields {
		d.release(f.To) // what is taken out, no later step can change
	}
	d.Commit()
	return fields
}

// Commit ends a step of which nobody keeps more than the object, until the last step. It is Take
// without a list of what has changed.
func (d *Draft) Commit() {
	if d == nil {
		return
	}
	for _, o := range d.taken {
		o.made, o.edited, o.before = false, nil, nil
	}
	d.taken, d.sets = d.taken[:0], 0
}

func (d *Draft) release(value any) {
	switch v := value.(type) {
	case map[string]any:
		delete(d.own, identity(v))
		for _, below := range v {
			d.release(below)
		}
	case []any:
		for _, element := range v {
			d.release(element)
		}
	}
}

// Revert ends a step that is not to be: the object becomes what it was before.
func (d *Draft) Revert() {
	if d == nil {
		return
	}
	for _, o := range d.taken {
		if o.made {
			delete(d.own, identity(o.content))
		}
		for name := range o.edited {
			if value, ok := o.before[name]; ok {
				o.content[name] = value
				d.keepTexts(o.content, o.content, value)
			} else {
				delete(o.content, name)
			}
		}
		o.edited, o.before = nil, nil
	}
	d.taken, d.sets = d.taken[:0], 0
}

// Settle returns an error whose text no later step changes, although it may refer to a part of the object. It
// wraps the error.
func (d *Draft) Settle(err error) error {
	if err == nil || d == nil || len(d.own) == 0 {
		return err
	}
	return &settledError{text: err.Error(), err: err}
}

type settledError struct {
	text string
	err  error
}

// Error is the text as it was when the step ended.
func (e *settledError) Error() string { return e.text }

// Unwrap returns the error.
func (e *settledError) Unwrap() error { return e.err }

// Freeze makes the draft copy each map again, once, before it changes it: somebody may have
// kept one.
func (d *Draft) Freeze() {
	if d != nil {
		clear(d.own)
	}
}
