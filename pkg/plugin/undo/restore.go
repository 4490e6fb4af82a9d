package undo

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// Restoration is an object with the writes of a run reverted.
type Restoration struct {
	// Want is the object with everything put back that can be: the live object
	// itself where there is nothing to put back.
	Want *unstructured.Unstructured
	// Kept are the fields that are left as they are, with the reasons.
	Kept []Kept
}

// Kept is a field that is not put back.
type Kept struct {
	Path fieldpath.Path
	Why  error // ErrChanged, ErrWithheld, ErrGone or ErrReordered
	// Owners are the managers that own the field now, if it was changed.
	Owners []plan.Writer
}

// Why a field is not put back.
var (
	ErrChanged  = errors.New("was changed since the run")
	ErrWithheld = errors.New("holds a value of a Secret, which the journal does not keep (--journal-secrets)")
	ErrGone     = errors.New("belongs to something that no longer exists")
	// ErrReordered: the values are put back, and their order is left.
	ErrReordered = errors.New("was reordered since the run")
)

// Error names the field, the reason and the owners.
func (k Kept) Error() string {
	text := fmt.Sprintf("%s is not put back: it %v", engine.PathString(k.Path), k.Why)
	var owners []string
	for _, w := range k.Owners {
		owners = append(owners, w.String())
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
func (o *Object) Restore(live *unstructured.Unstructured) Restoration {
	r := restoring{Restoration: Restoration{Want: live}, live: live}
	for _, w := range slices.Backward(o.Writes) {
		r.write = w
		r.takeBack()
	}
	return r.Restoration
}

// restoring works on one object.
type restoring struct {
	Restoration
	live  *unstructured.Unstructured
	write Write
}

// takeBack reverts one write: values and elements first, then the order of lists.
func (r *restoring) takeBack() {
	ordered := fieldpath.NewSet() // the lists that have been put in order
	units := unitsOf(r.write.Partial)
	for _, u := range units {
		if u.Kind != engine.Moved {
			r.value(u)
		}
	}
	for _, u := range units {
		list, element, ok := splitElement(u.Path)
		if !ok || ordered.Has(list) {
			continue
		}
		ordered.Insert(list)
		if !r.order(list, element) {
			r.keep(list, ErrReordered)
		}
	}
}

// value puts back what was at a path, if what is there now is from the run.
func (r *restoring) value(u engine.FieldChange) {
	is := at(r.Want.Object, u.Path)
	was, wrote := at(r.write.Before, u.Path), at(r.write.After, u.Path)
	switch {
	case u.Withheld && !r.untouched(u):
		r.keep(u.Path, ErrWithheld)
	case u.Withheld:
		r.put(u.Path, was)
	case is.same(was):
	case is.same(wrote):
		r.put(u.Path, was)
	default:
		r.keep(u.Path, ErrChanged)
	}
}

// untouched reports whether a field that was added without its value being known
// can be removed: the object was not written since.
func (r *restoring) untouched(u engine.FieldChange) bool {
	return u.Kind == engine.Added && !r.write.InDoubt && r.write.ResourceVersion == r.live.GetResourceVersion()
}

func (r *restoring) keep(p fieldpath.Path, why error) {
	k := Kept{Path: p, Why: why}
	if !errors.Is(why, ErrWithheld) {
		k.Owners = plan.OwnersOf(r.live, p)
	}
	r.Kept = append(r.Kept, k)
}

// put makes a path have a value, or nothing.
func (r *restoring) put(p fieldpath.Path, v content) {
	if r.Want == r.live {
		r.Want = r.live.DeepCopy()
	}
	if !set(r.Want.Object, p, v) {
		r.keep(p, ErrGone)
		return
	}
	if !v.there {
		r.prune(p)
	}
}

// prune removes the maps that a removal has left empty and that were not there
// before the run.
func (r *restoring) prune(p fieldpath.Path) {
	for n := len(p) - 1; n > 0 && p[n].FieldName != nil && p[n-1].FieldName != nil; n-- {
		parent := at(r.Want.Object, p[:n])
		fields, isMap := parent.value.(map[string]any)
		if !isMap || len(fields) > 0 || at(r.write.Before, p[:n]).there {
			return
		}
		set(r.Want.Object, p[:n], content{})
	}
}
