package engine

import (
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// Schema answers the two questions that dialects and the write path ask of a
// kind's OpenAPI schema. Both are nil where the kind has no schema.
type Schema struct {
	// Types converts to structured-merge-diff's typed values: list-map keys,
	// sets and atomics, as server-side apply and CEL's ApplyConfiguration merge.
	Types managedfields.TypeConverter
	// Patch looks up patch strategies and merge keys, as strategic merge does.
	Patch strategicpatch.LookupPatchMeta
}

// Known reports whether there is a schema at all.
func (s Schema) Known() bool { return s.Types != nil }
