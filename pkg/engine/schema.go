package engine

import (
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Schema answers the questions that are asked of a kind's OpenAPI schema. All are nil where the
// kind has no schema.
type Schema struct {
	// Types converts to structured-merge-diff's typed values: list-map keys,
	// sets and atomics, as server-side apply and CEL's ApplyConfiguration merge.
	Types managedfields.TypeConverter
	// Fields says which values a server takes, and how lists are patched.
	Fields FieldValidator
}

// FieldValidator knows the fields of a kind, and what values they can have: their types,
// enumerations, and which may not be absent. What a server checks beyond that is not known.
type FieldValidator interface {
	// Validate returns what of a value a server would refuse, if the value stood at the path, or,
	// for nil, if nothing did.
	Validate(at fieldpath.Path, value any) []InvalidField
	// ListPatch returns the patch strategies and the merge key of a list, for strategic merge; false if there is no such
	// list. An empty name on the path stands for the elements of one.
	ListPatch(path []string) (strategies []string, key string, known bool)
}

// InvalidField is a field that a server would refuse.
type InvalidField struct {
	Path fieldpath.Path
	// Why completes a sentence about the field, and names no value: "has to be a boolean, and is a
	// string".
	Why string
	// Unknown reports that the type has no such field.
	Unknown bool
	// Meant is the field that one which there is not was probably meant to be; empty for none.
	Meant string
	// Allowed are the values that the field may have, where it has one that is none of them.
	Allowed []any
}

// Known reports whether there is a schema at all.
func (s Schema) Known() bool { return s.Types != nil }
