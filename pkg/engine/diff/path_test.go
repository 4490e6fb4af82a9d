package diff_test

import (
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

func key(nameValues ...any) fieldpath.PathElement { return fieldpath.KeyElementByFields(nameValues...) }

func TestPointer(t *testing.T) {
	object := map[string]any{
		"labels": map[string]any{"a/b~c": "x"},
		"containers": []any{
			map[string]any{"name": "sidecar"},
			map[string]any{"name": "web", "ports": []any{
				map[string]any{"containerPort": int64(80)},
				map[string]any{"containerPort": int64(80), "protocol": "UDP"},
			}},
		},
		"twice":      []any{map[string]any{"name": "x"}, map[string]any{"name": "x"}},
		"finalizers": []any{"a", "b"},
	}
	tests := []struct {
		name string
		path fieldpath.Path
		want string
		ok   bool
	}{
		{"the whole object", nil, "", true},
		{"escapes", fieldpath.MakePathOrDie("labels", "a/b~c"), "/labels/a~1b~0c", true},
		{"an element by name", fieldpath.MakePathOrDie("containers", key("name", "web"), "image"), "/containers/1/image", true},
		{"an element by a key with a default", fieldpath.MakePathOrDie("containers", key("name", "web"), "ports", key("containerPort", int64(80), "protocol", "TCP")), "/containers/1/ports/0", true},
		{"an element of a set", fieldpath.MakePathOrDie("finalizers", fieldpath.ValueElement(value.NewValueInterface("b"))), "/finalizers/1", true},
		{"an element by index", fieldpath.MakePathOrDie("finalizers", 1), "/finalizers/1", true},
		{"an index beyond the list", fieldpath.MakePathOrDie("finalizers", 2), "", false},
		{"a key that stands twice", fieldpath.MakePathOrDie("twice", key("name", "x")), "", false},
		{"an element that is not there", fieldpath.MakePathOrDie("containers", key("name", "none")), "", false},
		{"a parent that is not there", fieldpath.MakePathOrDie("spec", "x"), "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := diff.Pointer(object, tt.path)
			if got != tt.want || ok != tt.ok {
				t.Errorf("got %q, %v, want %q, %v", got, ok, tt.want, tt.ok)
			}
		})
	}
}
