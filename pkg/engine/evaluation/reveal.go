package evaluation

import (
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// revealer finds what may be shown of an object after a program that uses Secrets.
type revealer struct {
	learn func(any) // is called with what is hidden by itself; may be nil
	still []place   // of what is hidden and was the same before
	// only are the fields that rules change in the world that hides alone.
	only []fieldpath.Path
	// object reports that fields of the object itself are hidden, before and after.
	object bool
}

// isOnly reports whether a field is, or is a part of, one that is changed in the world that hides alone.
func (r *revealer) isOnly(at place, name string) bool {
	at = append(at[:len(at):len(at)], name)
	return slices.ContainsFunc(r.only, func(p fieldpath.Path) bool {
		for i, step := range at {
			if i == len(p) || p[i].FieldName == nil {
				return true
			}
			if *p[i].FieldName != step {
				return false
			}
		}
		return len(p) == len(at)
	})
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
	if text == engine.HiddenValue {
		r.learned(s.after)
	}
	if s.before != nil && diff.Same(s.before, s.after) {
		r.still = append(r.still, s.place)
	}
	return text
}

func (r *revealer) learned(v any) {
	if r.learn != nil {
		r.learn(v)
	}
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
			if !same && had && diff.Same(was, after[name]) && r.isOnly(s.place, name) {
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
	for i, name := range hidden {
		out[hiddenName(i)] = engine.HiddenValue
		if computed > 0 {
			r.learned(name)
		}
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
		case visible || is || r.isOnly(at, name):
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

// put returns a value in which another one is at a place; the value itself where it has no such place.
func (p place) put(in, v any) any {
	if len(p) == 0 {
		return v
	}
	switch in := in.(type) {
	case map[string]any:
		name, _ := p[0].(string)
		if below, ok := in[name]; ok {
			out := maps.Clone(in)
			out[name] = p[1:].put(below, v)
			return out
		}
	case []any:
		if i, ok := p[0].(int); ok && i < len(in) {
			out := slices.Clone(in)
			out[i] = p[1:].put(in[i], v)
			return out
		}
	}
	return in
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

// shownAt finds the value at a path of an object, as it may be shown, and how the path itself may be
// shown: it ends at the first name that is hidden.
func shownAt(p fieldpath.Path, real, shown any) (path fieldpath.Path, found any, there bool) {
	for _, e := range p {
		var ok bool
		if e, real, shown, ok = shownBelow(e, real, shown); e == (fieldpath.PathElement{}) {
			return path, shown, ok
		}
		path = append(path, e)
		if !ok {
			return path, shown, false
		}
	}
	return path, shown, true
}

// shownBelow goes one step down. The element is empty where what is above is hidden as a whole.
func shownBelow(e fieldpath.PathElement, real, shown any) (out fieldpath.PathElement, realBelow, shownBelow any, ok bool) {
	if text, ok := shown.(string); ok && engine.IsHidden(text) {
		return out, nil, shown, true
	}
	if e.FieldName != nil {
		return fieldBelow(*e.FieldName, real, shown)
	}
	list, _ := real.([]any)
	shownList, _ := shown.([]any)
	i := diff.Index(list, e)
	if i < 0 || i >= len(shownList) {
		return hiddenElement(e, nil), nil, nil, false
	}
	return hiddenElement(e, shownList[i]), list[i], shownList[i], true
}

func fieldBelow(name string, real, shown any) (out fieldpath.PathElement, realBelow, shownBelow any, ok bool) {
	fields, _ := real.(map[string]any)
	shownFields, _ := shown.(map[string]any)
	below, is := fields[name]
	seen, visible := shownFields[name]
	if !is || visible {
		return fieldpath.FieldNameElement(name), below, seen, is
	}
	i := 0
	for _, other := range slices.Sorted(maps.Keys(fields)) {
		if other == name {
			break
		}
		if _, visible := shownFields[other]; !visible {
			i++
		}
	}
	hidden := hiddenName(i)
	if _, visible := shownFields[hidden]; !visible {
		hidden = engine.HiddenValue // stands for all of them
	}
	return fieldpath.FieldNameElement(hidden), nil, engine.HiddenValue, true
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
