package diff

import (
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// maxDepth bounds what is read from files. No object that an API server stores comes
// near to it.
const maxDepth = 256

var (
	errDepth   = fmt.Errorf("nested deeper than %d", maxDepth)
	errForeign = errors.New("a field is in neither state of its object")
	errHidden  = errors.New("the two states of the object do not show the change of this field")
)

// Validate makes sure that a change that was read from a file holds together, and
// gives its fields their values.
func (p *Partial) Validate() error {
	if err := errors.Join(p.Before.Validate(), p.After.Validate()); err != nil {
		return err
	}
	for i := range p.Fields {
		if err := p.readValues(&p.Fields[i]); err != nil {
			return fmt.Errorf("%s: %w", engine.PathString(p.Fields[i].Path), err)
		}
	}
	return nil
}

// readValues gives a field the values that the states have of it. It is an error if
// these are not what its kind says.
func (p *Partial) readValues(f *engine.FieldChange) error {
	if len(f.Path) > maxDepth {
		return errDepth
	}
	_, was := Lookup(map[string]any(p.Before), f.Path)
	_, is := Lookup(map[string]any(p.After), f.Path)
	if (f.Kind != engine.Added && !was) || (f.Kind != engine.Removed && !is) {
		return errForeign
	}
	f.From, f.To = p.values(*f)
	return nil
}

// ValidateShown returns an error if a difference between the states, which is what
// people are shown, does not show one of the fields. It is for a change that was read from
// a file and is valid.
func (p *Partial) ValidateShown() error {
	seen := map[string]map[int]engine.ChangeKind{}
	for i := range p.Fields {
		if f := &p.Fields[i]; !p.shows(f) || !p.showsPlaces(f, seen) {
			return fmt.Errorf("%s: %w", engine.PathString(f.Path), errHidden)
		}
	}
	return nil
}

func (p *Partial) shows(f *engine.FieldChange) bool {
	at := f.Path
	n := slices.IndexFunc(at, func(e fieldpath.PathElement) bool { return e.Index != nil })
	switch {
	case n >= 0:
		at = at[:n] // the place of an element in one state is that of another in the other
	case f.Kind == engine.Moved:
		at = at[:len(at)-1]
	}
	from, _ := Lookup(map[string]any(p.Before), at)
	to, _ := Lookup(map[string]any(p.After), at)
	switch {
	case n < 0 && f.Kind == engine.Added && from != nil, n < 0 && f.Kind == engine.Removed && to != nil:
		return false
	case from == nil && to == nil:
		return f.Kind != engine.Moved && n < 0 // null is as good as absent
	}
	return !Same(from, to)
}

// showsPlaces reports whether the elements by whose places a field is named differ in what is shown, and as
// they should: what is shown of ["a"] and ["b", "a"] is that "b" comes first, and not that "a" comes second.
// Seen has the lists that were compared. Where values of a list are withheld, what differs in it is not
// known.
func (p *Partial) showsPlaces(f *engine.FieldChange, seen map[string]map[int]engine.ChangeKind) bool {
	for n, e := range f.Path {
		if e.Index == nil {
			continue
		}
		list := f.Path[:n]
		places, ok := seen[list.String()]
		if !ok {
			places = p.places(list)
			seen[list.String()] = places
		}
		kind := engine.Replaced
		if n == len(f.Path)-1 {
			kind = f.Kind
		}
		if places != nil && places[*e.Index] != kind {
			return false
		}
	}
	return true
}

// places returns how a list differs in each of its places; nil where values of it are withheld.
func (p *Partial) places(list fieldpath.Path) map[int]engine.ChangeKind {
	for _, f := range p.Fields {
		if n := min(len(f.Path), len(list)); f.Withheld && f.Path[:n].Equals(list[:n]) {
			return nil
		}
	}
	from, _ := Lookup(map[string]any(p.Before), list)
	to, _ := Lookup(map[string]any(p.After), list)
	a, _ := from.([]any)
	b, _ := to.([]any)
	var c comparison
	c.indexed(nil, a, b, Type{})
	out := map[int]engine.ChangeKind{}
	for _, f := range c.fields {
		if out[*f.Path[0].Index] = f.Kind; len(f.Path) > 1 {
			out[*f.Path[0].Index] = engine.Replaced
		}
	}
	return out
}

// Validate makes sure that a part is not nested too deep to be worked with.
func (p Part) Validate() error {
	if depth(map[string]any(p)) > maxDepth {
		return errDepth
	}
	return nil
}

func depth(v any) int {
	deepest := 0
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			deepest = max(deepest, depth(x))
		}
	case []any:
		for _, x := range v {
			deepest = max(deepest, depth(x))
		}
	default:
		return 0
	}
	return deepest + 1
}
