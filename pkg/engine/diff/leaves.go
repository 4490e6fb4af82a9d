package diff

import (
	"maps"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Leaves returns the fields of a change with added and removed maps split, in elements of lists too, so that
// values that others add to them are no part of the change. An empty map is a leaf, and so is a withheld
// field.
func (p Partial) Leaves() []engine.FieldChange { return p.split(true) }

// Units returns the fields of a change that are put back as one: like Leaves, but an element of a list comes
// and goes as a whole.
func (p Partial) Units() []engine.FieldChange { return p.split(false) }

func (p Partial) split(elements bool) []engine.FieldChange {
	var out []engine.FieldChange
	for _, f := range p.Fields {
		if isElement := f.Path[len(f.Path)-1].FieldName == nil; f.Withheld || isElement && !elements {
			out = append(out, f)
		} else {
			out = appendLeaves(out, f)
		}
	}
	return out
}

func appendLeaves(out []engine.FieldChange, f engine.FieldChange) []engine.FieldChange {
	content := f.To
	if f.Kind == engine.Removed {
		content = f.From
	}
	fields, _ := content.(map[string]any)
	if f.Kind != engine.Added && f.Kind != engine.Removed || len(fields) == 0 {
		return append(out, f)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		part := f
		part.Path = field(f.Path, name)
		if f.Kind == engine.Removed {
			part.From = fields[name]
		} else {
			part.To = fields[name]
		}
		out = appendLeaves(out, part)
	}
	return out
}

// Withholds reports whether a value of the change is withheld, so that equal changes may still differ.
func (p Partial) Withholds() bool {
	return slices.ContainsFunc(p.Fields, func(f engine.FieldChange) bool { return f.Withheld })
}

// Drift returns the leaves of the change, except withheld ones, whose value in an object is not the value
// after the change. Other content of the object is not drift, and null counts as absent.
func (p Partial) Drift(object map[string]any) []fieldpath.Path {
	return p.differing(map[string]any(p.After), object)
}

// DriftBefore is Drift for the values before the change.
func (p Partial) DriftBefore(object map[string]any) []fieldpath.Path {
	return p.differing(map[string]any(p.Before), object)
}

func (p Partial) differing(a, b map[string]any) []fieldpath.Path {
	var out []fieldpath.Path
	for _, f := range p.Leaves() {
		if !f.Withheld && !Same(leafValue(a, f), leafValue(b, f)) {
			out = append(out, f.Path)
		}
	}
	return out
}

// leafValue returns an object's value at a leaf: the index of an element that moved.
func leafValue(object map[string]any, f engine.FieldChange) any {
	if f.Kind == engine.Moved {
		return place(object, f.Path)
	}
	v, _ := Lookup(object, f.Path)
	return v
}

// Unlike returns the leaves that only one of two changes has, or that they change differently, in path order.
// Withheld values count as equal.
func (p Partial) Unlike(other Partial) []fieldpath.Path {
	type leaf struct {
		kind engine.ChangeKind
		path string
	}
	leafOf := func(f engine.FieldChange) leaf { return leaf{f.Kind, engine.PathString(f.Path)} }
	others, met := map[leaf]engine.FieldChange{}, map[leaf]bool{} // several withheld ones may have one path
	for _, f := range other.Leaves() {
		others[leafOf(f)] = f
	}
	var out []fieldpath.Path
	for _, f := range p.Leaves() {
		g, ok := others[leafOf(f)]
		met[leafOf(f)] = true
		if !ok || !f.Withheld && !(Same(f.From, g.From) && Same(f.To, g.To)) {
			out = append(out, f.Path)
		}
	}
	for l, f := range others {
		if !met[l] {
			out = append(out, f.Path)
		}
	}
	slices.SortFunc(out, fieldpath.Path.Compare)
	return slices.CompactFunc(out, fieldpath.Path.Equals)
}
