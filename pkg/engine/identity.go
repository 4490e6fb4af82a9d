package engine

import (
	"fmt"
	"reflect"
	"strings"
	"unsafe"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	for _, path := range [][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}, {"metadata", "uid"}} {
		was, _, _ := unstructured.NestedFieldNoCopy(before, path...)
		is, _, _ := unstructured.NestedFieldNoCopy(after, path...)
		if !reflect.DeepEqual(was, is) {
			return &IdentityError{Field: strings.Join(path, ".")}
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
