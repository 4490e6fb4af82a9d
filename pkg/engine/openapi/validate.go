package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Extensions that make a schema accept more than its types say.
const (
	preserveUnknownExtension = "x-kubernetes-preserve-unknown-fields"
	embeddedExtension        = "x-kubernetes-embedded-resource"
	intOrStringExtension     = "x-kubernetes-int-or-string"
	listKeysExtension        = "x-kubernetes-list-map-keys"
)

// maxInvalid bounds the findings about one value.
const maxInvalid = 100

// validator is the engine.FieldValidator of one type.
type validator struct {
	typed
	group string
}

var _ engine.FieldValidator = validator{}

// Validate checks a value against the type of the field at a path. Without a known type it finds nothing.
func (v validator) Validate(at fieldpath.Path, value any) []engine.InvalidField {
	found := invalid{strict: strings.Contains(v.group, ".") && !strings.HasSuffix(v.group, ".k8s.io")}
	t, ok := v.typed, true
	for i, e := range at {
		if !ok {
			return nil
		}
		if e.FieldName == nil {
			list := t
			if t.items() == nil {
				return nil
			}
			if t, ok = t.to(t.items()); ok && i == len(at)-1 {
				found.keys(at, value, list, t)
			}
			continue
		}
		of, known := t.property(*e.FieldName)
		switch {
		case !known:
			if value != nil {
				found.unknown(at[:i+1], t)
			}
			return found.fields
		case of == nil:
			return nil
		case value == nil && i == len(at)-1:
			if slices.Contains(t.schema.Required, *e.FieldName) {
				found.add(at, "is required")
			} else if empty, isStruct := of.Default.(map[string]any); isStruct && len(empty) == 0 {
				if t, ok := t.to(of); ok { // a struct that is always present, and empty now
					found.required(at, t, func(string) bool { return true })
				}
			}
			return found.fields
		}
		t, ok = t.to(of)
	}
	if ok {
		found.value(slices.Clip(at), value, t)
	}
	return found.fields
}

type invalid struct {
	fields []engine.InvalidField
	// strict makes all required fields of the schema mandatory, as for a custom resource. In Kubernetes' own
	// types a required field may have a zero value, and then be left out.
	strict bool
}

func (f *invalid) add(at fieldpath.Path, why string) {
	if len(f.fields) < maxInvalid {
		f.fields = append(f.fields, engine.InvalidField{Path: slices.Clone(at), Why: why})
	}
}

// unknown adds a field that the type lacks.
func (f *invalid) unknown(at fieldpath.Path, t typed) {
	if len(f.fields) < maxInvalid {
		f.add(at, "is not in the schema of the kind")
		last := &f.fields[len(f.fields)-1]
		last.Unknown, last.Meant = true, engine.Nearest(*at[len(at)-1].FieldName, maps.Keys(t.properties()))
	}
}

// required adds missing required fields of a type, among the wanted ones.
func (f *invalid) required(at fieldpath.Path, t typed, wanted func(string) bool) {
	for _, name := range t.schema.Required {
		if wanted(name) {
			f.add(append(slices.Clone(at), fieldpath.PathElement{FieldName: &name}), "is required")
		}
	}
}

// keys adds required fields that an element of a list with keys lacks: it was made only by its key.
func (f *invalid) keys(at fieldpath.Path, element any, list, of typed) {
	m, isMap := element.(map[string]any)
	if !isMap || f.strict {
		return
	}
	names, _ := list.schema.Extensions[listKeysExtension].([]any)
	names = append(slices.Clip(names), list.schema.Extensions[patchMergeKeyExtension])
	if names = slices.DeleteFunc(names, func(name any) bool { return name == nil }); len(names) == 0 {
		return
	}
	f.required(at, of, func(name string) bool { return m[name] == nil })
	if of.schema.Properties["image"].Type != nil && of.schema.Properties["imagePullPolicy"].Type != nil &&
		m["image"] == nil {
		image := "image" // of a container: required by the server (ValidatePodSpec), not by any schema
		f.add(append(slices.Clone(at), fieldpath.PathElement{FieldName: &image}), "is required")
	}
}

// value checks a value, and the values in it, against a type. Paths below at may share its memory: clone a
// path to keep it.
func (f *invalid) value(at fieldpath.Path, value any, t typed) {
	if value == nil {
		return // a server drops it, or says so itself
	}
	is := typeOf(value)
	if types := t.types(); len(types) > 0 && !slices.ContainsFunc(types,
		func(name string) bool { return is == name || is == "integer" && name == "number" }) {
		f.add(at, fmt.Sprintf("has to be %s, and is %s", join(types), article(is)))
		return
	}
	if allowed := t.schema.Enum; len(allowed) > 0 && value != "" &&
		!slices.ContainsFunc(allowed, func(one any) bool { return sameJSON(one, value) }) {
		if f.add(at, "has to be one of "+enumeration(allowed)); len(f.fields) < maxInvalid {
			f.fields[len(f.fields)-1].Allowed = allowed
		}
		return
	}
	switch value := value.(type) {
	case map[string]any:
		f.required(at, t, func(name string) bool {
			of, _ := t.property(name)
			_, there := value[name]
			return f.strict && !there && (of == nil || of.Default == nil)
		})
		names := slices.AppendSeq(make([]string, 0, len(value)), maps.Keys(value))
		slices.Sort(names)
		for _, name := range names {
			below := append(at, fieldpath.PathElement{FieldName: &name}) // see above
			of, known := t.property(name)
			if !known {
				f.unknown(below, t)
			} else if of != nil {
				if t, ok := t.to(of); ok {
					f.value(below, value[name], t)
				}
			}
		}
	case []any:
		if t.items() == nil {
			return
		}
		of, ok := t.to(t.items())
		if !ok {
			return
		}
		for i, item := range value {
			below := append(at, fieldpath.PathElement{Index: &i}) // see above
			f.keys(below, item, t, of)
			f.value(below, item, of)
		}
	}
}

// property returns the schema of a field, nil for any value; known is false if there can be no such field.
func (t typed) property(name string) (of *spec.Schema, known bool) {
	if p, ok := t.properties()[name]; ok {
		return p, true
	}
	if more := t.schema.AdditionalProperties; more != nil {
		return more.Schema, more.Schema != nil || more.Allows
	}
	return nil, len(t.schema.Properties) == 0 || t.has(preserveUnknownExtension) ||
		t.has(embeddedExtension) && slices.Contains([]string{"apiVersion", "kind", "metadata"}, name)
}

// to follows the reference of a schema; ok is false where it leads nowhere.
func (t typed) to(s *spec.Schema) (_ typed, ok bool) {
	r, err := t.resolve(s)
	return r, err == nil
}

// has reports whether a boolean extension of the schema is true.
func (t typed) has(extension string) bool {
	yes, _ := t.schema.Extensions[extension].(bool)
	return yes
}

// types lists the possible JSON types of a value; none for any.
func (t typed) types() []string {
	if t.has(intOrStringExtension) {
		return []string{"integer", "string"}
	}
	if len(t.schema.Type) > 0 {
		return t.schema.Type
	}
	var out []string
	for _, alternatives := range [...][]spec.Schema{t.schema.OneOf, t.schema.AnyOf} {
		for i := range alternatives {
			if len(alternatives[i].Type) == 0 {
				return nil
			}
			out = append(out, alternatives[i].Type...)
		}
	}
	return out
}

// typeOf returns the JSON type of a value as schemas name it.
func typeOf(value any) string {
	switch v := value.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case int64, int:
		return "integer"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

func join(types []string) string {
	out := make([]string, len(types))
	for i, name := range types {
		out[i] = article(name)
	}
	return strings.Join(out, " or ")
}

func article(name string) string {
	if strings.ContainsRune("aeiou", rune(name[0])) {
		return "an " + name
	}
	return "a " + name
}

func enumeration(allowed []any) string {
	out := make([]string, len(allowed))
	for i, one := range allowed {
		out[i] = fmt.Sprint(one)
	}
	return engine.Few(out)
}

func sameJSON(a, b any) bool {
	if s, isText := a.(string); isText {
		return s == b
	}
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
