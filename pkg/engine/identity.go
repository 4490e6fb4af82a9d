package engine

import (
	"fmt"
	"reflect"
	"unsafe"
)

// IdentityError is a rule that would make another object of the one it was given, which no
// server takes.
type IdentityError struct{ Field string }

// Error names the field.
func (e *IdentityError) Error() string {
	return fmt.Sprintf("changes %s, which makes it another object", e.Field)
}

// SameObject returns an *IdentityError if two states differ in what identifies an object:
// apiVersion, kind, name, namespace or uid.
func SameObject(before, after map[string]any) error {
	for _, key := range []string{"apiVersion", "kind"} {
		if !reflect.DeepEqual(before[key], after[key]) {
			return &IdentityError{Field: key}
		}
	}
	was, _ := before["metadata"].(map[string]any)
	is, _ := after["metadata"].(map[string]any)
	for _, key := range []string{"name", "namespace", "uid"} {
		if !reflect.DeepEqual(was[key], is[key]) {
			return &IdentityError{Field: "metadata." + key}
		}
	}
	return nil
}

// Identical reports whether two values of JSON are one and the same in memory, as opposed to
// equal. Scalars and empty lists are if they are equal. It walks into nothing.
func Identical(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && identity(x) == identity(y)
	case []any:
		y, ok := b.([]any)
		return ok && len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0])
	}
	return a == b
}

func identity(m map[string]any) unsafe.Pointer { return reflect.ValueOf(m).UnsafePointer() }
