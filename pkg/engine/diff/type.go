package diff

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/openapi"
)

// Type is how the server types a value. The zero Type stands for "unknown":
// lists are then matched by a unique `name`, else by index.
type Type struct {
	Schema *schema.Schema
	Ref    schema.TypeRef
	// EmptyIsAbsent holds for built-in kinds, where the server drops explicit nulls, and treats an empty list or
	// map as none: protobuf, the storage format, makes no difference.
	EmptyIsAbsent bool
	// Form is the form of values of built-in kinds, some of which count as absent.
	Form *openapi.Type
}

// TypeOf returns how the server types objects of a kind, as far as the reader knows its schema.
func TypeOf(ctx context.Context, r engine.Reader, gvk apischema.GroupVersionKind) Type {
	if r == nil {
		return NewType(nil, gvk)
	}
	s, err := r.Schema(ctx, gvk)
	if err != nil {
		return NewType(nil, gvk)
	}
	return NewType(s.Types, gvk)
}

// NewType returns how the server types objects of a kind, as far as its schemas are known; types may be nil.
func NewType(types managedfields.TypeConverter, gvk apischema.GroupVersionKind) Type {
	t := Type{EmptyIsAbsent: BuiltIn(gvk.Group), Form: openapi.StoredType(gvk)}
	if types == nil {
		return t
	}
	empty := &unstructured.Unstructured{Object: map[string]any{}}
	empty.SetGroupVersionKind(gvk)
	typed, err := types.ObjectToTyped(empty)
	if err != nil {
		return t // they do not have the kind, or not in this version
	}
	t.Schema, t.Ref = typed.Schema(), typed.TypeRef()
	return t
}

// BuiltIn reports whether the group is served by the API server's own Go types, which know no null and drop
// zero values, and not by a CustomResourceDefinition. The suffix does not tell: gateway.networking.k8s.io is
// made of custom resources.
func BuiltIn(group string) bool {
	return scheme.Scheme.IsGroupRegistered(group) || group == "apiextensions.k8s.io" ||
		group == "apiregistration.k8s.io"
}

// Atom resolves the type; ok is false where nothing is known.
func (t Type) Atom() (schema.Atom, bool) {
	if t.Schema == nil {
		return schema.Atom{}, false
	}
	return t.Schema.Resolve(t.Ref)
}

func (t Type) unknown(form *openapi.Type) Type {
	return Type{EmptyIsAbsent: t.EmptyIsAbsent, Form: form}
}

func (t Type) to(ref schema.TypeRef, form *openapi.Type) Type {
	return Type{Schema: t.Schema, Ref: ref, EmptyIsAbsent: t.EmptyIsAbsent, Form: form}
}

// Field is the type of one entry of a map or struct.
func (t Type) Field(name string) Type {
	a, ok := t.Atom()
	if !ok || a.Map == nil {
		return t.unknown(t.Form.Field(name))
	}
	if f, ok := a.Map.FindField(name); ok {
		return t.to(f.Type, t.Form.Field(name))
	}
	return t.to(a.Map.ElementType, t.Form.Field(name))
}

// Element is the type of the elements of a list.
func (t Type) Element() Type {
	if l, ok := t.list(); ok {
		return t.to(l.ElementType, t.Form.Element())
	}
	return t.unknown(t.Form.Element())
}

// list is the list type, if the type is known to be one.
func (t Type) list() (*schema.List, bool) {
	a, ok := t.Atom()
	if !ok || a.List == nil {
		return nil, false
	}
	return a.List, true
}

// Absent reports whether the server reads a present value as absent. An empty list or map counts only where
// the type is one, not where the value may be anything, such as the default in the schema of a
// CustomResourceDefinition, nor an empty struct, which may have a meaning: emptyDir, or a selector of
// everything.
func (t Type) Absent(v any) bool {
	if !t.EmptyIsAbsent || v == nil {
		return t.EmptyIsAbsent
	}
	a, known := t.Atom()
	switch v := v.(type) {
	case []any:
		return len(v) == 0 && (!known || a.List != nil && a.Map == nil && a.Scalar == nil)
	case map[string]any:
		return len(v) == 0 && known && a.Map != nil && len(a.Map.Fields) == 0 && a.List == nil && a.Scalar == nil
	}
	return false
}

// fieldAbsent is Absent for a field of the type. A struct that is always present, and so is empty by default,
// also counts where all its fields are absent.
func (t Type) fieldAbsent(name string, v any) bool {
	if !t.EmptyIsAbsent || v == nil {
		return t.EmptyIsAbsent
	}
	fields, isMap := v.(map[string]any)
	if !isMap && isPresent(v) {
		return t.Form.Drops(name, v) // most values: their type costs more than this
	}
	for _, below := range fields {
		if _, isMap := below.(map[string]any); !isMap && isPresent(below) && !isZero(below) {
			return false // and most maps
		}
	}
	of := t.Field(name)
	if len(fields) == 0 && of.Absent(v) {
		return true
	}
	if byDefault, isStruct := t.DefaultOf(name).(map[string]any); !isMap || !isStruct || len(byDefault) > 0 {
		return false
	}
	for below, x := range fields {
		if !of.fieldAbsent(below, x) {
			return false
		}
	}
	return true
}

// isPresent reports whether a value other than a map is present, whatever its type.
func isPresent(v any) bool {
	list, isList := v.([]any)
	return v != nil && (!isList || len(list) > 0)
}

func isZero(v any) bool { return v == false || v == "" || v == int64(0) || v == float64(0) }

// IsQuantity reports whether values are resource quantities, which the server
// compares by amount and writes in a canonical form.
func (t Type) IsQuantity() bool {
	return t.Ref.NamedType != nil && strings.HasSuffix(*t.Ref.NamedType, ".api.resource.Quantity")
}

// DefaultOf returns the schema's default of a field of the elements of a list, for a key that an element
// leaves out.
func (t Type) DefaultOf(name string) any {
	a, ok := t.Atom()
	if !ok || a.Map == nil {
		return nil
	}
	if f, ok := a.Map.FindField(name); ok {
		return f.Default
	}
	return nil
}
