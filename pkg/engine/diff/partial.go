package diff

import (
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Partial is a change of an object without the rest of the object: its fields, and as much of the object
// before and after as their values need. Lists are whole where elements come, go or move, or are named by
// index; in other lists unchanged elements have only their keys.
//
// That is enough to compare the change with another one, to revert and print it and to know its patch, and it
// is small: ten thousand of them fit where ten thousand objects do not.
//
// In JSON only Before and After have the values of the fields. A Partial that was read must be validated,
// which restores them.
type Partial struct {
	Before Part                 `json:"before,omitempty"`
	After  Part                 `json:"after,omitempty"`
	Fields []engine.FieldChange `json:"fields,omitempty"`
}

// Part is a part of an object. Its numbers are read as an object's are.
type Part map[string]any

// UnmarshalJSON reads whole numbers as int64.
func (p *Part) UnmarshalJSON(text []byte) error {
	var m map[string]any
	if err := utiljson.Unmarshal(text, &m); err != nil {
		return err
	}
	*p = m
	return nil
}

// PartialOf returns the partial change of an evaluated object. It refers to the changed parts of the object,
// not to the object.
func PartialOf(c *engine.Change) Partial {
	return cut(c.Before, c.After, c.Fields)
}

// Between returns the differences between two states of an object, without the server's bookkeeping
// (WithoutBookkeeping).
func Between(before, after *unstructured.Unstructured, t Type) Partial {
	return cut(before, after, Compare(WithoutBookkeeping(before.Object), WithoutBookkeeping(after.Object), t))
}

// WithoutBookkeeping returns an object without the server's own fields: managedFields, resourceVersion and
// generation.
func WithoutBookkeeping(object map[string]any) map[string]any {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return object
	}
	metadata = maps.Clone(metadata)
	for _, name := range []string{"managedFields", "resourceVersion", "generation"} {
		delete(metadata, name)
	}
	object = maps.Clone(object)
	object["metadata"] = metadata
	return object
}

// Answered returns the change with the server's answer to the write in place of the expected values. Nothing
// else of the answer is in it: others may have added to that later state.
func (p Partial) Answered(answer *unstructured.Unstructured) Partial {
	kept, before := fieldpath.NewSet(), map[string]any(p.Before)
	for _, f := range p.Units() {
		kept.Insert(shortened(shortened(f.Path, before, map[string]any(p.After)), before, answer.Object))
	}
	out := Partial{Before: p.Before, After: partOf(answer.Object, kept)}
	for _, f := range p.Fields {
		if kind, differs := out.kindOf(f); differs {
			f.Kind = kind
			f.From, f.To = out.values(f)
			out.Fields = append(out.Fields, f)
		}
	}
	return out
}

// Sharing returns the change with equal states from another one: a run keeps both for each object that it
// writes.
func (p Partial) Sharing(other Partial) Partial {
	if reflect.DeepEqual(p.Before, other.Before) {
		p.Before = other.Before
	}
	if reflect.DeepEqual(p.After, other.After) {
		p.After = other.After
	}
	return p
}

// kindOf returns how a field differs between the two states.
func (p Partial) kindOf(f engine.FieldChange) (kind engine.ChangeKind, differs bool) {
	_, was := Lookup(map[string]any(p.Before), f.Path)
	_, is := Lookup(map[string]any(p.After), f.Path)
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

// values returns From and To of a field.
func (p Partial) values(f engine.FieldChange) (from, to any) {
	if f.Kind == engine.Moved {
		return place(p.Before, f.Path), place(p.After, f.Path)
	}
	return p.Contents(f)
}

// Contents returns the values of the states at the path of a field; nil where there are none. For a moved
// element of a list they are not From and To, which are its indices.
func (p Partial) Contents(f engine.FieldChange) (from, to any) {
	if f.Kind != engine.Added {
		from, _ = Lookup(map[string]any(p.Before), f.Path)
	}
	if f.Kind != engine.Removed {
		to, _ = Lookup(map[string]any(p.After), f.Path)
	}
	return from, to
}

// place returns the index of a list element, as int64; nil where it is absent.
func place(object map[string]any, path fieldpath.Path) any {
	last := len(path) - 1
	list, _ := Lookup(object, path[:last])
	elements, _ := list.([]any)
	if i := Index(elements, path[last]); i >= 0 {
		return int64(i)
	}
	return nil
}

// WithStates returns the same fields with their values in other states of the object, such as masked ones.
func (p Partial) WithStates(before, after Part) Partial {
	out := Partial{Before: before, After: after, Fields: make([]engine.FieldChange, len(p.Fields))}
	for i, f := range p.Fields {
		f.From, f.To = out.values(f)
		out.Fields[i] = f
	}
	return out
}

// Change returns the change like an evaluation, for printers: its objects have only the changed content and
// their identity.
func (p Partial) Change(key engine.ObjectKey) engine.Change {
	c := engine.Change{Subject: key, Before: p.Before.Object(key), Fields: p.Fields}
	c.After = c.Before
	if len(p.Fields) > 0 {
		c.After = p.After.Object(key)
	}
	c.Target = engine.Target{Key: key, Object: c.Before}
	return c
}

// Object returns the part as an object with the identity of a key.
func (p Part) Object(key engine.ObjectKey) *unstructured.Unstructured {
	metadata := map[string]any{"name": key.Name}
	if key.Namespace != "" {
		metadata["namespace"] = key.Namespace
	}
	if key.UID != "" {
		metadata["uid"] = string(key.UID)
	}
	out := map[string]any{
		"apiVersion": key.GroupVersionKind().GroupVersion().String(), "kind": key.Kind, "metadata": metadata,
	}
	for k, v := range p {
		fields, ok := v.(map[string]any)
		if k != "metadata" || !ok {
			out[k] = v
			continue
		}
		fields = maps.Clone(fields)
		maps.Copy(fields, metadata)
		out[k] = fields
	}
	return &unstructured.Unstructured{Object: out}
}

// PartOf reverses Part.Object: it returns an object without the identity of the key.
func PartOf(u *unstructured.Unstructured) Part {
	out := maps.Clone(u.Object)
	delete(out, "apiVersion")
	delete(out, "kind")
	metadata, _ := out["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	for _, name := range []string{"name", "namespace", "uid"} {
		delete(metadata, name)
	}
	if out["metadata"] = metadata; len(metadata) == 0 {
		delete(out, "metadata")
	}
	return out
}
