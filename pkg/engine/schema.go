package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
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

// Known tells whether there is a schema at all.
func (s Schema) Known() bool { return s.Types != nil }

// TypeOf says how the server compares objects of a kind, as far as the reader
// knows its schema.
func TypeOf(ctx context.Context, r Reader, gvk schema.GroupVersionKind) diff.Type {
	t := diff.Type{EmptyIsAbsent: diff.BuiltIn(gvk.Group)}
	if r == nil {
		return t
	}
	s, err := r.Schema(ctx, gvk)
	if err != nil || !s.Known() {
		return t
	}
	empty := &unstructured.Unstructured{Object: map[string]any{}}
	empty.SetGroupVersionKind(gvk)
	typed, err := s.Types.ObjectToTyped(empty)
	if err != nil {
		return t
	}
	t.Schema, t.Ref = typed.Schema(), typed.TypeRef()
	return t
}
