// This file gives objects the form in which an API server hands them to admission and stores them: the form
// of its Go types for kinds in client-go's scheme, and of the schema for custom resources.
//
// A field with its zero value is dropped where the type says so, an always encoded one is added, quantities,
// times and durations are written in canonical form, and defaults are set.

package openapi

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Type is the form of a value. The nil Type is the form of an unknown value.
type Type struct {
	fields   map[string]*field
	always   []string // the structs that are encoded whatever they hold
	element  *Type    // of a list or a map
	scalar   func(any) any
	zero     any // of a scalar; nil for others
	prunes   bool
	defaults map[string]any
	computed func(map[string]any) map[string]any // fields that others decide; nil drops one
}

type field struct {
	*Type
	omitted  bool // if it has its zero value
	pointer  bool
	nullable bool // a null is a value
}

//nolint:gochecknoglobals // a cache of what never changes
var (
	mu    sync.Mutex
	types = map[reflect.Type]*Type{}
	kinds sync.Map // of *Type, by schema.GroupVersionKind
)

// StoredType returns the type of a built-in kind; nil for others.
func StoredType(gvk schema.GroupVersionKind) *Type {
	if known, ok := kinds.Load(gvk); ok {
		return known.(*Type) // nothing else is stored
	}
	var t *Type
	if object, err := scheme.Scheme.New(gvk); err == nil {
		mu.Lock()
		t = typeOfValue(reflect.TypeOf(object).Elem())
		mu.Unlock()
	}
	kinds.Store(gvk, t)
	return t
}

// typeOfValue returns the encoded form of the values of a Go type. The lock is held.
func typeOfValue(of reflect.Type) *Type {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if known, ok := types[of]; ok {
		return known
	}
	t := &Type{}
	types[of] = t // before its fields, which may refer to it
	switch reflect.Zero(of).Interface().(type) {
	case resource.Quantity:
		t.scalar = Quantity
		return t
	case intstr.IntOrString:
		t.zero = int64(0)
		return t
	case metav1.Time:
		t.scalar = canonicalTime(time.RFC3339)
		return t
	case metav1.MicroTime:
		t.scalar = canonicalTime(metav1.RFC3339Micro)
		return t
	case metav1.Duration:
		t.scalar = canonicalDuration
		return t
	case []byte:
		t.scalar, t.zero = canonicalBytes, ""
		return t
	case runtime.RawExtension, metav1.FieldsV1:
		return t
	}
	switch of.Kind() {
	case reflect.Bool:
		t.zero = false
	case reflect.String:
		t.zero = ""
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint32, reflect.Uint64:
		t.zero = int64(0)
	case reflect.Float32, reflect.Float64:
		t.zero = float64(0)
	case reflect.Slice, reflect.Map:
		t.element = typeOfValue(of.Elem())
		if of == reflect.TypeFor[corev1.ResourceList]() {
			t.element = &Type{scalar: canonicalAmount}
		}
	case reflect.Struct:
		t.fields = map[string]*field{}
		t.addFields(of)
	default:
	}
	return t
}

// addFields adds the fields of a struct, including inlined structs.
func (t *Type) addFields(of reflect.Type) {
	name := strings.TrimPrefix(of.PkgPath(), "k8s.io/api/") + "." + of.Name()
	if fixed := defaults[name]; fixed != nil && t.defaults == nil {
		t.defaults = map[string]any{}
		maps.Copy(t.defaults, fixed)
	}
	if f := computed[name]; f != nil {
		t.computed = f
	}
	for i := range of.NumField() {
		in := of.Field(i)
		name, options, _ := strings.Cut(in.Tag.Get("json"), ",")
		switch {
		case name == "-" || !in.IsExported():
			continue
		case name == "":
			t.addFields(in.Type)
			continue
		}
		f := &field{Type: typeOfValue(in.Type), pointer: in.Type.Kind() == reflect.Pointer}
		f.omitted = strings.Contains(options, "omitzero") || strings.Contains(options, "omitempty") &&
			in.Type.Kind() != reflect.Struct
		t.fields[name] = f
		if f.fields != nil && !f.omitted && !f.pointer {
			t.always = append(t.always, name)
		}
	}
}

// Field is the type of a field, or of an entry of a map.
func (t *Type) Field(name string) *Type {
	if t == nil {
		return nil
	}
	if f := t.fields[name]; f != nil {
		return f.Type
	}
	return t.element
}

// Element is the type of the elements of a list.
func (t *Type) Element() *Type {
	if t == nil {
		return nil
	}
	return t.element
}

// Drops reports whether a scalar in a field is a zero value that the type does not encode, so that it counts
// as absent.
func (t *Type) Drops(name string, v any) bool {
	if t == nil {
		return false
	}
	f := t.fields[name]
	return f != nil && f.omitted && !f.pointer && f.zero != nil && f.zero == v
}

// Same reports whether two scalars have the same canonical form.
func (t *Type) Same(a, b any) bool {
	return t != nil && t.scalar != nil && t.scalar(a) == t.scalar(b)
}

// AsStored returns an object of a built-in kind in the form of its type, and others as they are.
func AsStored(u *unstructured.Unstructured) *unstructured.Unstructured {
	return StoredType(u.GroupVersionKind()).Object(u)
}

// Object returns an object as an API server decodes it, with defaults. Values that a server refuses stay as
// they are. The object is not modified; the result shares unchanged parts.
func (t *Type) Object(u *unstructured.Unstructured) *unstructured.Unstructured {
	object, _ := t.decode(u.Object).(map[string]any)
	if engine.Identical(object, u.Object) {
		return u
	}
	return &unstructured.Unstructured{Object: object}
}

func (t *Type) decode(v any) any {
	if t == nil {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		switch {
		case t.fields != nil:
			return t.decodeStruct(v)
		case t.element != nil:
			return t.element.decodeMap(v)
		}
	case []any:
		if t.element != nil {
			return t.element.decodeList(v)
		}
	default:
		if t.scalar != nil {
			return t.scalar(v)
		}
	}
	return v
}

// decodeMap decodes a map with elements of the type.
func (t *Type) decodeMap(in map[string]any) map[string]any {
	out := in
	if t.scalar == nil && t.fields == nil && t.element == nil && t.zero == nil {
		return in
	}
	for name, v := range in {
		if now := t.decodeElement(v); !engine.Identical(now, v) {
			out = owned(out, in, 0)
			out[name] = now
		}
	}
	return out
}

func (t *Type) decodeList(in []any) []any {
	var out []any
	for i, v := range in {
		now := t.decodeElement(v)
		if out == nil && !engine.Identical(now, v) {
			out = append(make([]any, 0, len(in)), in...)
		}
		if out != nil {
			out[i] = now
		}
	}
	if out == nil {
		return in
	}
	return out
}

// decodeElement decodes an element of a list or a map; null is a zero value.
func (t *Type) decodeElement(v any) any {
	if v == nil && t.zero != nil {
		return t.zero
	}
	return t.decode(v)
}

func (t *Type) decodeStruct(in map[string]any) map[string]any {
	out, more := in, len(t.defaults)+len(t.always)+1
	for name, v := range in {
		f := t.fields[name]
		if f == nil {
			if t.prunes {
				out = owned(out, in, more)
				delete(out, name)
			}
			continue
		}
		now := f.decode(v)
		switch {
		case v == nil && !f.nullable || f.empty(now):
			out = owned(out, in, more)
			delete(out, name)
		case !engine.Identical(now, v):
			out = owned(out, in, more)
			out[name] = now
		}
	}
	add := func(name string, v any) {
		f := t.fields[name]
		if now, has := out[name]; !has || !f.pointer && f.zero != nil && f.zero == now {
			out = owned(out, in, more)
			out[name] = f.decode(v)
		}
	}
	for name, v := range t.defaults {
		add(name, v)
	}
	if t.computed != nil {
		for name, v := range t.computed(out) {
			out = owned(out, in, more)
			if out[name] = t.fields[name].decode(v); v == nil {
				delete(out, name)
			}
		}
	}
	for _, name := range t.always {
		add(name, map[string]any{})
	}
	return out
}

// empty reports whether a field's value is not encoded.
func (f *field) empty(v any) bool {
	if !f.omitted && f.element == nil {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0 && !f.pointer && (f.element != nil || f.fields != nil)
	case []any:
		return len(v) == 0 && !f.pointer && f.element != nil
	}
	return !f.pointer && f.zero != nil && f.zero == v
}

// owned returns a map that may be modified: a copy with room for more fields, if it is still the given one.
func owned(out, in map[string]any, more int) map[string]any {
	if !engine.Identical(out, in) {
		return out
	}
	out = make(map[string]any, len(in)+more)
	maps.Copy(out, in)
	return out
}

// Quantity returns a quantity in its canonical form, and other values as they are.
func Quantity(v any) any {
	switch q := v.(type) {
	case string:
		if parsed, err := resource.ParseQuantity(strings.TrimSpace(q)); err == nil {
			return parsed.String()
		}
	case int64:
		return resource.NewQuantity(q, resource.DecimalSI).String()
	case float64:
		text, _ := json.Marshal(q)
		return Quantity(string(text))
	}
	return v
}

// canonicalAmount is a resource quantity, which has no parts below a thousandth.
func canonicalAmount(v any) any {
	v = Quantity(v)
	text, _ := v.(string)
	if parsed, err := resource.ParseQuantity(text); err == nil && !parsed.RoundUp(resource.Milli) {
		return parsed.String()
	}
	return v
}

func canonicalTime(layout string) func(any) any {
	return func(v any) any {
		text, _ := v.(string)
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC().Format(layout)
		}
		return v
	}
}

func canonicalDuration(v any) any {
	text, _ := v.(string)
	if d, err := time.ParseDuration(text); err == nil {
		return d.String()
	}
	return v
}

func canonicalBytes(v any) any {
	text, _ := v.(string)
	if strings.ContainsAny(text, "\r\n") {
		if data, err := base64.StdEncoding.DecodeString(text); err == nil {
			return base64.StdEncoding.EncodeToString(data)
		}
	}
	return v
}
