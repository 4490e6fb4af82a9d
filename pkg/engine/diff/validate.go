package diff

import (
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// maxDepth bounds the nesting of values from files. No object that an API server stores comes near to it.
const maxDepth = 256

var (
	errDepth   = fmt.Errorf("nested deeper than %d", maxDepth)
	errForeign = errors.New("a field is in neither state of its object")
	errHidden  = errors.New("the two states of the object do not show the change of this field")
)

// Validate checks that a change from a file is consistent, and gives its fields their values.
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

// readValues gives a field its values in the states. It is an error if they contradict its kind.
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

// ValidateShown returns an error if people, who are shown the differences between the states, would not see
// one of the fields. It is for a valid change from a file.
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
		at = at[:n] // an index may be of different elements in the two states
	case f.Kind == engine.Moved:
		at = at[:len(at)-1]
	}
	from, _ := Lookup(map[string]any(p.Before), at)
	to, _ := Lookup(map[string]any(p.After), at)
	switch {
	case n < 0 && f.Kind == engine.Added && from != nil, n < 0 && f.Kind == engine.Removed && to != nil:
		return false
	case from == nil && to == nil:
		return f.Kind != engine.Moved && n < 0 // null counts as absent
	}
	return !Same(from, to)
}

// showsPlaces reports whether the elements whose index is in a field's path differ in the output as they
// should: for ["a"] and ["b", "a"] it shows that "b" comes first, not that "a" comes second. Seen has the
// lists that were compared. The differences in a list with withheld values are unknown.
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

// places returns how a list differs at each index; nil where its values are withheld.
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

// Validate limits the nesting of a part.
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
