package openapi_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/openapi"
)

// Each kind of client-go has the fields of its Go type, so that the schemas are those of the
// version of Kubernetes that go.mod requires: else, run go generate.
func TestBuiltinHasEachFieldOfEachKind(t *testing.T) {
	kinds := 0
	for gvk := range scheme.Scheme.AllKnownTypes() {
		object, err := scheme.Scheme.New(gvk)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := object.(metav1.Object); !ok || gvk.Version == runtime.APIVersionInternal {
			continue
		}
		d, err := openapi.Builtin(gvk)
		if err != nil {
			t.Fatal(err)
		}
		if d == nil || !d.Schema(gvk).Known() {
			t.Errorf("%s has no schema", gvk)
			continue
		}
		kinds++
		checkFields(t, gvk.Kind, reflect.TypeOf(object), d.Schema(gvk).Fields, nil)
	}
	if kinds < 100 {
		t.Errorf("checked %d kinds", kinds)
	}
}

// checkFields compares the fields of a Go type with those of a schema.
func checkFields(t *testing.T, kind string, of reflect.Type, known engine.FieldValidator, path fieldpath.Path) {
	t.Helper()
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || len(path) > 12 {
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
			checkFields(t, kind, f.Type, known, path)
		case name == "" || name == "-":
		default:
			below, of := append(slices.Clip(path), fieldpath.PathElement{FieldName: &name}), f.Type
			if of.Kind() == reflect.Slice && of.Elem().Kind() != reflect.Uint8 {
				below, of = append(below, fieldpath.PathElement{Index: new(int)}), of.Elem()
			}
			if slices.ContainsFunc(known.Validate(below, true), func(f engine.InvalidField) bool { return f.Unknown }) {
				t.Errorf("%s has no %s", kind, below)
				continue
			}
			checkFields(t, kind, of, known, below)
		}
	}
}
