package fielddiff

import (
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// Type is how the server types a value. The zero Type stands for "unknown":
// lists are then matched by a unique `name`, else by index.
type Type struct {
	Schema *schema.Schema
	Ref    schema.TypeRef
	// NullIsAbsent holds for built-in kinds, where the server drops explicit nulls.
	NullIsAbsent bool
}

// atom resolves the type; ok is false where nothing is known.
func (t Type) atom() (schema.Atom, bool) {
	if t.Schema == nil {
		return schema.Atom{}, false
	}
	return t.Schema.Resolve(t.Ref)
}

func (t Type) unknown() Type { return Type{NullIsAbsent: t.NullIsAbsent} }

func (t Type) to(ref schema.TypeRef) Type {
	return Type{Schema: t.Schema, Ref: ref, NullIsAbsent: t.NullIsAbsent}
}

// field is the type of one entry of a map or struct.
func (t Type) field(name string) Type {
	a, ok := t.atom()
	if !ok || a.Map == nil {
		return t.unknown()
	}
	if f, ok := a.Map.FindField(name); ok {
		return t.to(f.Type)
	}
	return t.to(a.Map.ElementType)
}

// list is the list type, if the type is known to be one.
func (t Type) list() (*schema.List, bool) {
	a, ok := t.atom()
	if !ok || a.List == nil {
		return nil, false
	}
	return a.List, true
}

// isQuantity tells whether values are resource quantities, which the server
// compares by amount and writes in a canonical form.
func (t Type) isQuantity() bool {
	return t.Ref.NamedType != nil && strings.HasSuffix(*t.Ref.NamedType, ".api.resource.Quantity")
}

// defaultOf is the schema's default of a field of the elements of a list; a key
// that an element leaves out has this value.
func (t Type) defaultOf(name string) any {
	a, ok := t.atom()
	if !ok || a.Map == nil {
		return nil
	}
	if f, ok := a.Map.FindField(name); ok {
		return f.Default
	}
	return nil
}
