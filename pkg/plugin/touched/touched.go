package touched

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// Touched is what a change touches of an object: its fields, and of the object
// before and after no more than what is needed to know their values. Lists are
// whole where elements come, go or move, or are named by their place; in other
// lists the elements that do not change are there with their keys alone.
type Touched struct {
	Before Part    `json:"before,omitempty"`
	After  Part    `json:"after,omitempty"`
	Fields []Field `json:"fields,omitempty"`
}

// Field is one field that differs. Its values are those of Before and After.
type Field struct {
	Path fieldpath.Path
	Kind engine.ChangeKind
	// Withheld tells that a value belongs to a Secret: what Before and After hold
	// in its place is a mask.
	Withheld bool
	// Secret tells that a value belongs to a Secret, and is there all the same.
	Secret bool
	// Rule wrote the field; zero where that is not the question.
	Rule engine.RuleRef
}

// By is what an evaluated change touches.
func By(c *engine.Change) Touched {
	fields := make([]Field, len(c.Fields))
	for i, f := range c.Fields {
		fields[i] = Field{Path: f.Path, Kind: f.Kind, Rule: f.Rule}
	}
	return cut(c.Before, c.After, fields)
}

// Between is in what two states of an object differ, apart from what the server
// counts on its own account: managedFields, resourceVersion and generation. The
// type says how the server compares them; see engine.TypeOf.
func Between(before, after *unstructured.Unstructured, t diff.Type) Touched {
	differences := diff.Compare(WithoutBookkeeping(before.Object), WithoutBookkeeping(after.Object), t)
	fields := make([]Field, len(differences))
	for i, f := range differences {
		fields[i] = Field{Path: f.Path, Kind: f.Kind}
	}
	return cut(before, after, fields)
}

// Answered is the same change with what the server answered to the write in the
// place of what was expected of it. What the answer has besides is none of it: it
// may be a later state of the object, to which others have added.
func (t Touched) Answered(answer *unstructured.Unstructured) Touched {
	cutter := newTree(Touched{Before: t.Before, After: t.After, Fields: t.Leaves()})
	cutter.widen(map[string]any(t.Before), answer.Object)
	out := Touched{Before: t.Before, After: cutter.cut(answer.Object)}
	for _, f := range t.Fields {
		if kind, differs := out.kindOf(f); differs {
			f.Kind = kind
			out.Fields = append(out.Fields, f)
		}
	}
	return out
}

// kindOf says how a field differs by what the two states have of it.
func (t Touched) kindOf(f Field) (kind engine.ChangeKind, differs bool) {
	_, was := diff.Lookup(map[string]any(t.Before), f.Path)
	_, is := diff.Lookup(map[string]any(t.After), f.Path)
	switch {
	case was && is && f.Kind == engine.Moved:
		return engine.Moved, true
	case was && is:
		return engine.Replaced, true
	case was:
		return engine.Removed, true
	}
	return engine.Added, is
}
