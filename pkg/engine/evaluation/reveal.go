package evaluation

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// revealer finds what may be shown of an object after a program that uses Secrets.
type revealer struct {
	still []place // of what is hidden and was the same before
	// only are the fields that rules change in the world that hides alone.
	only *pathTree
	// object reports that fields of the object itself are hidden, before and after.
	object bool
}

// pathTree is a set of paths. The texts of their elements lead from one to the next.
type pathTree struct {
	below  map[string]*pathTree
	hidden []*pathTree // those below that are hidden, and may be anything
	itself bool        // a path ends here
	items  bool        // what is below are items of a list
}

func newPathTree(fields []engine.FieldChange) *pathTree {
	t := &pathTree{}
	for _, f := range fields {
		at := t
		for _, e := range f.Path {
			text := e.String()
			next := at.below[text]
			if next == nil {
				next = &pathTree{}
				if at.below == nil {
					at.below = map[string]*pathTree{}
				}
				if at.below[text] = next; engine.IsHidden(text) {
					at.hidden = append(at.hidden, next)
				}
			}
			at.items = at.items || e.FieldName == nil
			at = next
		}
		at.itself = true
	}
	return t
}

// has reports whether a field is one of the paths, or a part of one. Of a list in which there are any, all is.
func (t *pathTree) has(at place, name string) bool {
	for _, step := range append(at[:len(at):len(at)], name) {
		if t.items {
			return true
		}
		name, _ := step.(string) // an item has none
		if t = t.below[fieldpath.FieldNameElement(name).String()]; t == nil || t.itself {
			return t != nil
		}
	}
	return false
}

// alongside reports whether a path may be one of these, or lead to one, or be a part of one; what is hidden of them may be anything.
func (t *pathTree) alongside(p fieldpath.Path) bool {
	if t.itself || len(p) == 0 {
		return true
	}
	if next := t.below[p[0].String()]; next != nil && next.alongside(p[1:]) {
		return true
	}
	return slices.ContainsFunc(t.hidden, func(next *pathTree) bool { return next.alongside(p[1:]) })
}

// place leads to a value: the names of fields, and the indexes of items.
type place []any

// states are one value, such as an object or a field: before and after a program, before it as it
// may be shown, and as the same program makes it where the values of all Secrets are hidden.
type states struct {
	place                        place
	before, after, shown, hiding any
}

func (s *states) below(step, before, after, shown, hiding any) states {
	return states{append(s.place[:len(s.place):len(s.place)], step), before, after, shown, hiding}
}

// reveal returns what may be shown of the value after the program: the value itself, with texts that are hidden as
// they are in the world that hides. Where the two worlds differ in anything else, a Secret decides what is
// done at all: the map or the list that it is done to is hidden as a whole. It reports false where that is
// the one that the value is in.
func (r *revealer) reveal(s states) (out any, alike bool) {
	if diff.Shared(s.before, s.after) && diff.Shared(s.shown, s.hiding) {
		return s.shown, true
	}
	switch after := s.after.(type) {
	case map[string]any:
		if hiding, isMap := s.hiding.(map[string]any); isMap {
			return r.fields(s, after, hiding), true
		}
	case []any:
		if hiding, isList := s.hiding.([]any); isList {
			return r.items(s, after, hiding), true
		}
	}
	if text, isText := s.hiding.(string); isText && engine.IsHidden(text) {
		return r.hidden(s, text), true
	}
	return s.after, diff.Same(s.after, s.hiding)
}

// hidden returns the hidden text that stands for the value.
func (r *revealer) hidden(s states, text string) string {
	if text == s.after {
		return text
	}
	if s.before != nil && diff.Same(s.before, s.after) {
		r.still = append(r.still, s.place)
	}
	return text
}

// whole hides a map or a list, unless nothing was done to it. Metadata goes on naming the object.
func (r *revealer) whole(s states) any {
	if diff.Same(s.before, s.after) {
		return s.shown
	}
	metadata, isMap := s.after.(map[string]any)
	if !isMap || len(s.place) != 1 || s.place[0] != "metadata" {
		return engine.HiddenValue
	}
	out := map[string]any{engine.HiddenValue: engine.HiddenValue}
	for _, name := range []string{"name", "namespace", "uid"} {
		if v, ok := metadata[name]; ok {
			out[name] = v
		}
	}
	return out
}

func (r *revealer) fields(s states, after, hiding map[string]any) any {
	before, _ := s.before.(map[string]any)
	shown, _ := s.shown.(map[string]any)
	out, alike, still := make(map[string]any, len(after)), removedAlike(before, after, shown, hiding), len(r.still)
	addedSame, computed := r.addedAlike(s.place, after, shown, hiding)
	alike = alike && computed <= added(before, after, hiding) // else a Secret names a field that was there before
	var hidden []string
	for _, name := range slices.Sorted(maps.Keys(after)) {
		was, had := before[name]
		seen, visible := shown[name]
		made, isMade := hiding[name]
		below := s.below(name, was, after[name], seen, made)
		switch {
		case had && !visible, !had && !(isMade && addedSame):
			hidden = append(hidden, name)
		case !isMade:
			alike = false
		default:
			v, same := r.reveal(below)
			if !same && had && diff.Same(was, after[name]) && r.only.has(s.place, name) {
				v, same = seen, true
			}
			if !same && (!had || len(s.place) == 0) {
				v, same = r.whole(below), true
			}
			out[name], alike = v, alike && same
		}
	}
	switch {
	case alike:
	case len(s.place) > 0:
		r.still = r.still[:still]
		return r.whole(s)
	default:
		r.object = true
		return identity(out)
	}
	for i := range hidden {
		out[hiddenName(i)] = engine.HiddenValue
	}
	return out
}

// removedAlike reports whether the same fields were removed in both worlds.
func removedAlike(before, after, shown, hiding map[string]any) bool {
	for name := range before {
		_, visible := shown[name]
		_, is := after[name]
		if _, isMade := hiding[name]; visible && !is && isMade {
			return false
		}
	}
	return true
}

// added counts the fields that are added, and not in the world that hides.
func added(before, after, hiding map[string]any) (n int) {
	for name := range after {
		_, had := before[name]
		if _, isMade := hiding[name]; !had && !isMade {
			n++
		}
	}
	return n
}

// addedAlike reports whether all fields that are added in the world that hides are added in the other one too,
// but for those whose names are hidden, and how many there are of those.
func (r *revealer) addedAlike(at place, after, shown, hiding map[string]any) (alike bool, computed int) {
	alike = true
	for name := range hiding {
		_, visible := shown[name]
		_, is := after[name]
		switch {
		case visible || is || r.only.has(at, name):
		case engine.IsHidden(name):
			computed++
		default:
			alike = false
		}
	}
	return alike, computed
}

// items pairs items by their place; a list of another length than in the world that hides is hidden as a whole.
func (r *revealer) items(s states, after, hiding []any) any {
	if len(after) != len(hiding) {
		return r.whole(s)
	}
	before, _ := s.before.([]any)
	shown, _ := s.shown.([]any)
	paired := len(before) == len(after) && len(shown) == len(after)
	out, still := make([]any, len(after)), len(r.still)
	for i, v := range after {
		below := s.below(i, nil, v, nil, hiding[i])
		if paired {
			below.before, below.shown = before[i], shown[i]
		}
		item, alike := r.reveal(below)
		if !alike {
			r.still = r.still[:still]
			return r.whole(s)
		}
		out[i] = item
	}
	return out
}

// hiddenName stands for the name of a field, of which several may be hidden in one map.
func hiddenName(i int) string {
	if i == 0 {
		return engine.HiddenValue
	}
	return fmt.Sprintf("%s (%d)", engine.HiddenValue, i+1)
}

// path is the place as a path.
func (p place) path() fieldpath.Path {
	out := make(fieldpath.Path, len(p))
	for i, step := range p {
		switch step := step.(type) {
		case string:
			out[i] = fieldpath.FieldNameElement(step)
		case int:
			out[i] = fieldpath.IndexElement(step)
		}
	}
	return out
}

// get returns the value at a place; nil where there is none.
func (p place) get(in any) any {
	for _, step := range p {
		switch v := in.(type) {
		case map[string]any:
			name, _ := step.(string)
			in = v[name]
		case []any:
			i, ok := step.(int)
			if !ok || i >= len(v) {
				return nil
			}
			in = v[i]
		default:
			return nil
		}
	}
	return in
}

// view is an object, and the same as it may be shown. It reads each map that has hidden fields once, and searches each
// list once, however many paths lead there.
type view struct {
	real, shown any
	names       map[string]map[string]string // of the hidden fields of a map, by its pointer
}

func viewOf(real, shown *unstructured.Unstructured) *view {
	return &view{real: real.Object, shown: shown.Object, names: map[string]map[string]string{}}
}

// at finds the value at a path of the object, as it may be shown, and how the path itself may be
// shown: it ends at the first name that is hidden.
func (v *view) at(p fieldpath.Path) (path fieldpath.Path, found any, there bool) {
	real, shown, pointer := v.real, v.shown, ""
	for _, e := range p {
		if text, ok := shown.(string); ok && engine.IsHidden(text) { // as a whole
			return path, shown, true
		}
		next := pointer + "/" + e.String()
		below, is := diff.Lookup(real, fieldpath.Path{e})
		i := 0
		if list, isList := real.([]any); isList && is {
			i = diff.Index(list, e)
		}
		seen, visible := shownBelow(shown, e, i)
		switch {
		case e.FieldName == nil && !is:
			e, seen = hiddenElement(e, nil), nil
		case e.FieldName == nil:
			e, is = hiddenElement(e, seen), visible
		case is && !visible:
			e, seen = fieldpath.FieldNameElement(v.hiddenName(pointer, real, shown, *e.FieldName)), engine.HiddenValue
		}
		path = append(path, e)
		if !is {
			return path, seen, false
		}
		real, shown, pointer = below, seen, next
	}
	return path, shown, true
}

// shownBelow is what may be shown of the value that an element of a path, which may have an index, names.
func shownBelow(shown any, e fieldpath.PathElement, index int) (seen any, visible bool) {
	if e.FieldName != nil {
		fields, _ := shown.(map[string]any)
		seen, visible = fields[*e.FieldName]
		return seen, visible
	}
	if list, _ := shown.([]any); index < len(list) {
		return list[index], true
	}
	return nil, false
}

// hiddenName is the name that stands for a field of the map at a pointer, of which the shown one lacks it.
func (v *view) hiddenName(pointer string, real, shown any, name string) string {
	names := v.names[pointer]
	if names == nil {
		fields, _ := real.(map[string]any)
		shownFields, _ := shown.(map[string]any)
		names = map[string]string{}
		for _, other := range slices.Sorted(maps.Keys(fields)) {
			if _, visible := shownFields[other]; visible {
				continue
			}
			hidden := hiddenName(len(names))
			if _, visible := shownFields[hidden]; !visible {
				hidden = engine.HiddenValue // stands for all of them
			}
			names[other] = hidden
		}
		v.names[pointer] = names
	}
	return names[name]
}

// hiddenElement names an item of a list by what may be shown of it.
func hiddenElement(e fieldpath.PathElement, item any) fieldpath.PathElement {
	switch {
	case e.Key != nil:
		fields, _ := item.(map[string]any)
		key := make(value.FieldList, len(*e.Key))
		for i, f := range *e.Key {
			key[i] = f
			if !diff.Same(fields[f.Name], f.Value.Unstructured()) {
				key[i].Value = value.NewValueInterface(engine.HiddenValue)
			}
		}
		return fieldpath.PathElement{Key: &key}
	case e.Value != nil && !diff.Same(item, (*e.Value).Unstructured()):
		return fieldpath.ValueElement(value.NewValueInterface(engine.HiddenValue))
	}
	return e
}
