package translate

import (
	"maps"
	"math"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// kinds are the possible types of a value, except null.
type kinds uint8

const (
	isBool kinds = 1 << iota
	isNumber
	isString
	isList
	isMap
	isScalar = isBool | isNumber | isString
	isAny    = isScalar | isList | isMap
)

func (k kinds) can(other kinds) bool { return k&other != 0 }

// Type is the known type of a value. The zero Type is unknown.
type Type struct {
	kinds kinds // 0: any
	in    diff.Type
	also  []Type           // the types of the same place in other kinds
	elem  *Type            // of a list, or of the values of a map
	known map[string]*Type // of fields
	// required are fields that are always there.
	required []string
	// sure are places that always exist, including their parents: "spec.template".
	sure     []string
	filled   bool // of a string that is never empty
	label    bool // of the value of a label
	quantity bool
	whole    bool // of a number without a fraction
	form     Form // of a string, the strings in a list, or the keys of a map
}

// Common types of values.
//
//nolint:gochecknoglobals // immutable
var (
	Any     = Type{}
	Text    = Type{kinds: isString}
	Name    = Type{kinds: isString, form: PathSegment} // of an object
	Label   = Type{kinds: isString, label: true}       // the value of a label
	Number  = Type{kinds: isNumber}
	Whole   = Type{kinds: isNumber, whole: true}
	Boolean = Type{kinds: isBool}
	Texts   = Type{kinds: isMap, elem: &Text} // such as the data of a ConfigMap
)

// ListOf is the type of a list.
func ListOf(elem Type) Type { return Type{kinds: isList, elem: &elem} }

// MapOf is the type of a map whose keys are not fields.
func MapOf(elem Type) Type { return Type{kinds: isMap, elem: &elem} }

// StructOf is the type of a map with these fields, some of them required.
func StructOf(fields map[string]Type, required ...string) Type {
	t := Type{kinds: isMap, known: map[string]*Type{}, required: required}
	for name, field := range fields {
		t.known[name] = &field
	}
	return t
}

func (t Type) can(k kinds) bool { return t.all().can(k) }

func (t Type) is(k kinds) bool { return t.all()&^k == 0 }

func (t Type) all() kinds {
	if t.kinds == 0 {
		return isAny
	}
	return t.kinds
}

//nolint:gochecknoglobals // immutable
var labels, annotations = Type{kinds: isMap, elem: &Label, form: PlainText},
	Type{kinds: isMap, elem: &Text, form: PlainText}

// Metadata is the type of an object's metadata.
//
//nolint:gochecknoglobals // immutable
var Metadata = Type{kinds: isMap, known: map[string]*Type{
	"name": &Name, "generateName": &Name, "namespace": &Name, "uid": &Name, "creationTimestamp": &Name,
	"labels": &labels, "annotations": &annotations,
}}

// Conventions are fields that are maps in every kind, even without a schema, by the Kubernetes API
// conventions.
//
//nolint:gochecknoglobals // immutable
var Conventions = []string{"spec", "status"}

//nolint:gochecknoglobals // immutable
var apiVersion = Type{kinds: isString, form: PlainText}

// ObjectType is the type of objects of some kinds whose sure places always exist.
func ObjectType(kinds []diff.Type, sure ...string) Type {
	t := Type{
		kinds: isMap,
		known: map[string]*Type{"apiVersion": &apiVersion, "kind": &Name, "metadata": &Metadata},
	}
	t.required, t.sure = []string{"apiVersion", "kind", "metadata"}, sure
	if len(kinds) > 0 && !slices.ContainsFunc(kinds, func(kind diff.Type) bool { return kind.Schema == nil }) {
		of := TypeOf(kinds...)
		t.in, t.also = of.in, of.also
		m := TypeOf(t.in.Field("metadata"))
		m.known = Metadata.known
		t.known["metadata"] = &m
	}
	return t
}

// TypeOf is the type of a value that has one of the schemas.
func TypeOf(in ...diff.Type) Type {
	t := typeOf(in[0])
	for _, other := range in[1:] {
		t = t.or(typeOf(other))
	}
	return t
}

// or is the common type of a value in several kinds: properties of only one of them, such as the form of a
// name, are dropped.
func (t Type) or(other Type) Type {
	out := either(t, other)
	if out.kinds == t.kinds && out.kinds != 0 {
		out.quantity = t.quantity && other.quantity
		out.required = slices.DeleteFunc(slices.Clone(t.required),
			func(name string) bool { return !slices.Contains(other.required, name) })
		out.also = append(append(slices.Clone(t.also), other), other.also...)
	}
	return out
}

func typeOf(in diff.Type) Type {
	atom, ok := in.Atom()
	if !ok {
		return Any
	}
	t := Type{in: in, quantity: in.IsQuantity()}
	if s := atom.Scalar; s != nil {
		t.kinds |= map[schema.Scalar]kinds{
			schema.Numeric: isNumber, schema.String: isString,
			schema.Boolean: isBool, schema.Untyped: isScalar,
		}[*s]
		if *s == schema.Untyped && atom.List == nil && atom.Map == nil {
			t.kinds = isString | isNumber
		}
	}
	t.whole = t.kinds == isNumber && in.EmptyIsAbsent // built-in kinds have no others; a custom one may
	if atom.List != nil {
		t.kinds |= isList
	}
	if atom.Map != nil {
		t.kinds |= isMap
	}
	if t.kinds == isAny { // the schema does not describe it
		t.kinds = 0
	}
	return t
}

// field returns the type of a field, and whether it always exists.
func (t Type) field(name string) (of Type, required bool) {
	of, required = t.named(name)
	for _, place := range t.sure {
		first, rest, more := strings.Cut(place, ".")
		required = required || first == name
		if first == name && more {
			of.sure = append(of.sure[:len(of.sure):len(of.sure)], rest)
		}
	}
	return of, required
}

func (t Type) named(name string) (of Type, required bool) {
	required = slices.Contains(t.required, name)
	if known := t.known[name]; known != nil {
		return *known, required
	}
	if t.elem != nil && t.is(isMap) {
		return *t.elem, required
	}
	of = t.inSchema(name)
	for _, kind := range t.also {
		of = of.or(kind.inSchema(name))
	}
	if of.kinds == 0 && t.known["metadata"] != nil && slices.Contains(Conventions, name) {
		of = Type{kinds: isMap}
	}
	return of, required
}

// inSchema is the type of a field in the schema of one kind.
func (t Type) inSchema(name string) Type {
	atom, ok := t.in.Atom()
	if !ok || atom.Map == nil {
		return Any
	}
	of := TypeOf(t.in.Field(name))
	if _, ok := atom.Map.FindField(name); ok && t.in.EmptyIsAbsent {
		of.form = formOfField(name)
	}
	return of
}

// isStruct reports whether the keys of the map are fields.
func (t Type) isStruct() bool {
	if t.known != nil || t.kinds == 0 || t.in.Schema == nil && t.elem == nil {
		return true
	}
	atom, ok := t.in.Atom()
	return ok && atom.Map != nil && len(atom.Map.Fields) > 0
}

// element is the type of a list's elements or a map's values. The merge keys of a list are assumed to exist
// in each element.
func (t Type) element() Type {
	if t.elem != nil {
		return *t.elem
	}
	of := t.ofSchema()
	for _, other := range t.also {
		of = of.or(other.ofSchema())
	}
	return of
}

func (t Type) ofSchema() Type {
	atom, ok := t.in.Atom()
	switch {
	case ok && atom.List != nil:
		elem := TypeOf(t.in.Element())
		for _, key := range atom.List.Keys {
			// other defaults, and an empty one, mean that it has to be set
			if text, _ := elem.in.DefaultOf(key).(string); text == "" {
				elem.required = append(elem.required, key)
			}
		}
		elem.form = t.form
		return elem
	case ok && atom.Map != nil && len(atom.Map.Fields) == 0:
		return TypeOf(t.in.Field(""))
	}
	return Any
}

// holdsFractions reports whether a list or a map may contain numbers that are not integers.
func (t Type) holdsFractions() bool {
	switch {
	case t.in.EmptyIsAbsent, t.is(isString | isBool), t.whole: // built-in kinds have no fractions
		return false
	case t.known != nil && t.known["metadata"] == nil: // an object has unknown fields
		return slices.ContainsFunc(slices.Collect(maps.Values(t.known)),
			func(field *Type) bool { return field.holdsFractions() })
	case t.is(isList), t.is(isMap) && !t.isStruct():
		return t.element().holdsFractions()
	}
	return true
}

func typeOfLiteral(value any) Type {
	switch v := value.(type) {
	case string:
		return Type{kinds: isString, form: formOf(v)}
	case bool:
		return Boolean
	case []any:
		t := Type{kinds: isList, form: PathSegment}
		if len(v) > 0 {
			elem := typeOfLiteral(v[0])
			for _, item := range v[1:] {
				elem = either(elem, typeOfLiteral(item))
			}
			t.elem, t.form = &elem, elem.Form()
		}
		return t
	case map[string]any:
		t := Type{kinds: isMap, form: PathSegment}
		for key := range v {
			t.form = min(t.form, formOf(key))
		}
		return t
	case nil:
		return Any
	case float64:
		return Type{kinds: isNumber, whole: v == math.Trunc(v) && math.Abs(v) < 1<<53}
	}
	return Whole
}

// either is the union of two types.
func either(a, b Type) Type {
	switch {
	case a.kinds == 0 || b.kinds == 0:
		return Any
	case a.kinds != b.kinds:
		return Type{kinds: a.kinds | b.kinds, form: min(a.Form(), b.Form())}
	case a.in.Schema == nil && a.elem == nil && a.known == nil:
		a, b = b, a
	}
	a.whole, a.form, a.label = a.whole && b.whole, min(a.Form(), b.Form()), a.label && b.label
	return a
}

// isOf is the condition that a value is of one of the kinds.
func isOf(e expr.Expr, k kinds) expr.Expr {
	var tests []expr.Expr
	for _, one := range []struct {
		kind  kinds
		names []string
	}{
		{isBool, []string{"bool"}},
		{isNumber, []string{"int", "double"}},
		{isString, []string{"string"}},
		{isList, []string{"list"}},
		{isMap, []string{"map"}},
	} {
		if !k.can(one.kind) {
			continue
		}
		for _, name := range one.names {
			tests = append(tests, expr.Equal(expr.Call("type", e), expr.Name(name)))
		}
	}
	return expr.Or(tests...)
}
