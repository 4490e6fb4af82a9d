package undo

import (
	"encoding/json"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// order puts the elements of a list back in their order, after those that came or
// went are undone. Where another client has ordered the list since, that order stays, and
// what was put back goes behind the element that it stood behind.
func (r *restoring) order(list fieldpath.Path, like fieldpath.PathElement) (done bool) {
	is, ok := at(r.Want.Object, list).value.([]any)
	was, okBefore := at(r.write.Before, list).value.([]any)
	wrote, okAfter := at(r.write.After, list).value.([]any)
	if !ok || !okBefore || !okAfter {
		return true // the list came or went as a whole
	}
	l := ordering{is: is, now: names(is, like), was: names(was, like), wrote: names(wrote, like)}
	if !l.distinct() {
		return false
	}
	var wanted []string
	if done = l.untouched(); done {
		wanted = l.arranged(common(l.was, l.now), l.now) // what is new stays where it is
	} else { // what was put back goes to its place
		wanted = l.arranged(slices.DeleteFunc(slices.Clone(l.now), func(name string) bool {
			return slices.Contains(l.was, name) && !slices.Contains(l.wrote, name)
		}), l.was)
	}
	if slices.Equal(wanted, l.now) {
		return done
	}
	if r.Want == r.live {
		r.Want = r.live.DeepCopy()
	}
	set(r.Want.Object, list, content{value: l.elements(wanted), there: true})
	return done
}

// ordering is a list and the names of its elements: now, before the run, and as
// the run left it.
type ordering struct {
	is              []any
	now, was, wrote []string
}

// names are what the key of each element says, or the elements of a set.
func names(list []any, like fieldpath.PathElement) []string {
	out := make([]string, len(list))
	for i, element := range list {
		key := element
		if fields, isMap := element.(map[string]any); isMap && like.Key != nil {
			values := make([]any, len(*like.Key))
			for j, k := range *like.Key {
				values[j] = fields[k.Name]
			}
			key = values
		}
		text, _ := json.Marshal(key) // of a JSON value
		out[i] = string(text)
	}
	return out
}

// distinct reports whether the names tell the elements apart.
func (l *ordering) distinct() bool {
	for _, list := range [][]string{l.now, l.was} {
		if len(slices.Compact(slices.Sorted(slices.Values(list)))) != len(list) {
			return false
		}
	}
	return true
}

// untouched reports whether the elements that the run left behind are still in the
// order in which it did.
func (l *ordering) untouched() bool {
	return slices.Equal(common(l.now, l.wrote), common(l.wrote, l.now))
}

// common are the elements of a list that are in another one too.
func common(list, other []string) []string {
	in := map[string]bool{}
	for _, name := range other {
		in[name] = true
	}
	return slices.DeleteFunc(slices.Clone(list), func(name string) bool { return !in[name] })
}

// arranged is the order of a base, with every other element that there is now behind the one that it stands behind in another order.
func (l *ordering) arranged(base, order []string) []string {
	for i, name := range order {
		if !slices.Contains(base, name) && slices.Contains(l.now, name) {
			base = insertBehind(base, name, order[:i])
		}
	}
	return base
}

// insertBehind inserts a name behind the last of others that is there, else in
// front.
func insertBehind(list []string, name string, others []string) []string {
	for _, other := range slices.Backward(others) {
		if i := slices.Index(list, other); i >= 0 {
			return slices.Insert(list, i+1, name)
		}
	}
	return slices.Insert(list, 0, name)
}

// elements are those of the list in the order of names.
func (l *ordering) elements(wanted []string) []any {
	places := make(map[string]int, len(l.now))
	for i, name := range l.now {
		places[name] = i
	}
	out := make([]any, len(wanted))
	for i, name := range wanted {
		out[i] = l.is[places[name]]
	}
	return out
}
