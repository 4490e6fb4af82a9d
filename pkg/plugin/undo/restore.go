package undo

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/plan"
)

// Restoration is an object with the writes of a run reverted.
type Restoration struct {
	// Want is the object with all possible values put back; the live object itself if there are none.
	Want *unstructured.Unstructured
	// Kept lists the fields that are not put back, with the reasons.
	Kept []Kept

	live  *unstructured.Unstructured
	write Write // to revert
}

// Kept is a field that is not put back.
type Kept struct {
	Path fieldpath.Path
	Why  error // ErrChanged, ErrWithheld, ErrGone or ErrReordered
	// Owners lists the present managers of a changed field.
	Owners []metav1.ManagedFieldsEntry
}

// Why a field is not put back.
var (
	ErrChanged  = errors.New("was changed since the run")
	ErrWithheld = errors.New("holds a value of a Secret, which the journal does not keep (--journal-secrets)")
	ErrGone     = errors.New("belongs to something that no longer exists")
	// ErrReordered: the values are put back, but not their order.
	ErrReordered = errors.New("was reordered since the run")
)

// Error names the field, the reason and the owners.
func (k Kept) Error() string {
	text := fmt.Sprintf("%s is not put back: it %v", engine.PathString(k.Path), k.Why)
	var owners []string
	for _, w := range k.Owners {
		owners = append(owners, plan.WriterString(w))
	}
	if len(owners) > 0 {
		text += "; now set by " + strings.Join(owners, ", ")
	}
	return text
}

// Unwrap returns the reason.
func (k Kept) Unwrap() error { return k.Why }

// Restore returns the object with the writes of the run reverted, the last one first.
// The live object is not modified.
func (o *Object) Restore(live *unstructured.Unstructured) *Restoration {
	r := &Restoration{Want: live, live: live}
	for _, r.write = range slices.Backward(o.Writes) {
		r.takeBack()
	}
	return r
}

// takeBack reverts one write: values and elements first, then the order of lists.
func (r *Restoration) takeBack() {
	ordered := fieldpath.NewSet() // the ordered lists
	units := unitsOf(r.write.Partial)
	for _, u := range units {
		if u.Kind != engine.Moved {
			r.value(u)
		}
	}
	for _, u := range units {
		last := len(u.Path) - 1
		list, element := u.Path[:last], u.Path[last]
		if element.FieldName != nil || ordered.Has(list) { // not an element that came, went or moved
			continue
		}
		ordered.Insert(list)
		if !r.order(list, element) {
			r.keep(list, ErrReordered)
		}
	}
}

// value puts back the earlier content of a path, if the present one is from the run.
func (r *Restoration) value(u engine.FieldChange) {
	is := at(r.Want.Object, u.Path)
	was, wrote := at(r.write.Before, u.Path), at(r.write.After, u.Path)
	switch {
	case u.Withheld && u.Kind == engine.Added && !r.write.InDoubt &&
		r.write.ResourceVersion == r.live.GetResourceVersion():
		r.put(u.Path, was) // the value is unknown, but nobody wrote the object since
	case u.Withheld:
		r.keep(u.Path, ErrWithheld)
	case is.same(was):
	case is.same(wrote):
		r.put(u.Path, was)
	default:
		r.keep(u.Path, ErrChanged)
	}
}

func (r *Restoration) keep(p fieldpath.Path, why error) {
	k := Kept{Path: p, Why: why}
	if !errors.Is(why, ErrWithheld) {
		k.Owners = plan.OwnersOf(r.live, p)
	}
	r.Kept = append(r.Kept, k)
}

// put sets or removes the value at a path.
func (r *Restoration) put(p fieldpath.Path, v content) {
	if !r.set(p, v) {
		r.keep(p, ErrGone)
	} else if !v.there {
		r.prune(p)
	}
}

// set sets the content at a path of the object, and reports whether it could.
func (r *Restoration) set(p fieldpath.Path, v content) bool {
	object, ok := put(r.Want.Object, p, v)
	if ok {
		r.Want = &unstructured.Unstructured{Object: object.(map[string]any)} // as it was
	}
	return ok
}

// prune removes the maps that a removal left empty and that did not exist before the run.
func (r *Restoration) prune(p fieldpath.Path) {
	for n := len(p) - 1; n > 0 && p[n].FieldName != nil && p[n-1].FieldName != nil; n-- {
		parent := at(r.Want.Object, p[:n])
		fields, isMap := parent.value.(map[string]any)
		if !isMap || len(fields) > 0 || at(r.write.Before, p[:n]).there {
			return
		}
		r.set(p[:n], content{})
	}
}

// order restores the order of a list, after added and removed elements are undone. If another client has
// ordered the list since, its order stays, and restored elements follow the element that they followed.
func (r *Restoration) order(list fieldpath.Path, like fieldpath.PathElement) (done bool) {
	is, ok := at(r.Want.Object, list).value.([]any)
	was, okBefore := at(r.write.Before, list).value.([]any)
	wrote, okAfter := at(r.write.After, list).value.([]any)
	if !ok || !okBefore || !okAfter {
		return true // the whole list came or went
	}
	now, before, after := keyNames(is, like), keyNames(was, like), keyNames(wrote, like)
	if sets.New(now...).Len() < len(now) || sets.New(before...).Len() < len(before) {
		return false // the names are not unique
	}
	var wanted []string
	// Done: the elements are still in the order of the run.
	if done = slices.Equal(common(now, after), common(after, now)); done {
		wanted = arranged(common(before, now), now, now) // new elements stay in place
	} else { // restored elements go to their place
		wanted = arranged(slices.DeleteFunc(slices.Clone(now), func(name string) bool {
			return slices.Contains(before, name) && !slices.Contains(after, name)
		}), now, before)
	}
	if slices.Equal(wanted, now) {
		return done
	}
	elements := make([]any, len(wanted))
	for i, name := range wanted {
		elements[i] = is[slices.Index(now, name)]
	}
	r.set(list, content{value: elements, there: true})
	return done
}

// keyNames returns the keys of the elements, or the elements of a set, as strings.
func keyNames(list []any, like fieldpath.PathElement) []string {
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

// common returns the elements of a list that another list has too.
func common(list, other []string) []string {
	in := sets.New(other...)
	return slices.DeleteFunc(slices.Clone(list), func(name string) bool { return !in.Has(name) })
}

// arranged returns the base with every other present element after the one that it follows in another order.
func arranged(base, now, order []string) []string {
	at := 0
	for _, name := range order {
		if i := slices.Index(base, name); i >= 0 {
			at = i + 1
		} else if slices.Contains(now, name) {
			base = slices.Insert(base, at, name)
			at++
		}
	}
	return base
}

// put returns a copy of a value with a content at a path, and whether that is possible. It creates missing
// maps on the way, but no list elements.
func put(v any, p fieldpath.Path, c content) (any, bool) {
	if len(p) == 0 {
		return c.value, true
	}
	if p[0].FieldName != nil {
		return putField(v, *p[0].FieldName, p[1:], c)
	}
	list, isList := v.([]any)
	i, last := diff.Index(list, p[0]), len(p) == 1
	switch {
	case p[0].Index != nil, !isList && v != nil, i < 0 && !last:
		return v, false
	case i < 0 && !c.there:
		return v, true
	case i < 0:
		return append(slices.Clone(list), c.value), true
	case last && !c.there:
		return slices.Delete(slices.Clone(list), i, i+1), true
	}
	out, ok := slices.Clone(list), false
	out[i], ok = put(list[i], p[1:], c)
	return out, ok
}

// putField is put for a field of a map, and a path below it.
func putField(v any, name string, below fieldpath.Path, c content) (any, bool) {
	fields, isMap := v.(map[string]any)
	is, exists := fields[name]
	switch {
	case !isMap && v != nil:
		return v, false
	case !exists && !c.there:
		return v, true // nothing to remove
	case len(below) == 0 && !c.there:
		return diff.Without(fields, name), true
	}
	is, ok := put(is, below, c)
	return diff.With(fields, name, is), ok
}

// unitsOf divides the fields of a change into units: a value, a list element by its key, its place in the
// list (Moved), or a whole list without keys.
func unitsOf(p diff.Partial) []engine.FieldChange {
	var out []engine.FieldChange
	for _, u := range p.Units() {
		if n := slices.IndexFunc(u.Path, func(e fieldpath.PathElement) bool { return e.Index != nil }); n >= 0 {
			u.Path, u.Kind = u.Path[:n], engine.Replaced
		}
		if last := len(out) - 1; last >= 0 && out[last].Path.Equals(u.Path) && out[last].Kind == u.Kind {
			out[last].Withheld = out[last].Withheld || u.Withheld
			continue
		}
		out = append(out, u)
	}
	return out
}

// content is the content of a path.
type content struct {
	value any
	there bool
}

func at[M ~map[string]any](object M, p fieldpath.Path) content {
	v, ok := diff.Lookup(map[string]any(object), p)
	return content{value: v, there: ok}
}

// same compares two contents. For a server, null equals absent.
func (c content) same(other content) bool {
	return diff.Same(c.value, other.value) && (c.there == other.there || c.value == nil)
}
