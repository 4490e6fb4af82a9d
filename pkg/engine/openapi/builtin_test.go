package openapi_test

import (
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/openapi"
)

// Each kind of client-go has the fields of its Go type, so that the schemas are those of the
// version of Kubernetes that go.mod requires: else, run go generate.
func TestBuiltinHasEachFieldOfEachKind(t *testing.T) {
	var all openapi.Builtin
	kinds := 0
	for gvk := range scheme.Scheme.AllKnownTypes() {
		object, err := scheme.Scheme.New(gvk)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := object.(metav1.Object); !ok || gvk.Version == runtime.APIVersionInternal {
			continue
		}
		d, err := all.Document(gvk)
		if err != nil {
			t.Fatal(err)
		}
		if d == nil || !d.Schema(gvk).Known() {
			t.Errorf("%s has no schema", gvk)
			continue
		}
		kinds++
		checkFields(t, gvk.Kind, reflect.TypeOf(object), d.Schema(gvk).Patch, 0)
	}
	if kinds < 100 {
		t.Errorf("checked %d kinds", kinds)
	}
}

// checkFields compares the fields of a Go type with those of a schema.
func checkFields(t *testing.T, at string, of reflect.Type, known strategicpatch.LookupPatchMeta, depth int) {
	t.Helper()
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || depth > 12 {
		return
	}
	if _, custom := reflect.New(of).Interface().(interface{ OpenAPISchemaType() []string }); custom {
		return // written as a scalar
	}
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && f.Anonymous:
			checkFields(t, at, f.Type, known, depth)
		case name == "" || name == "-":
		case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() != reflect.Uint8:
			below, _, err := known.LookupPatchMetadataForSlice(name)
			if err != nil {
				t.Errorf("%s.%s: %v", at, name, err)
				continue
			}
			checkFields(t, at+"."+name, f.Type.Elem(), below, depth+1)
		default:
			below, _, err := known.LookupPatchMetadataForStruct(name)
			if err != nil {
				t.Errorf("%s.%s: %v", at, name, err)
				continue
			}
			checkFields(t, at+"."+name, f.Type, below, depth+1)
		}
	}
}
