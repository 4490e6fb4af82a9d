package engine_test

import (
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

func TestPathString(t *testing.T) {
	key := fieldpath.KeyElementByFields
	set := func(v any) fieldpath.PathElement { return fieldpath.ValueElement(value.NewValueInterface(v)) }
	tests := []struct {
		name string
		path fieldpath.Path
		want string
	}{
		{"the whole object", nil, ""},
		{"nested fields", fieldpath.MakePathOrDie("spec", "replicas"), "spec.replicas"},
		{"a field with a dash", fieldpath.MakePathOrDie("metadata", "labels", "a-b"), "metadata.labels.a-b"},
		{"a field that needs quotes", fieldpath.MakePathOrDie("metadata", "labels", "app.kubernetes.io/name"), `metadata.labels["app.kubernetes.io/name"]`},
		{"a field named like an index", fieldpath.MakePathOrDie("data", "0"), `data["0"]`},
		{"a field that is not ASCII", fieldpath.MakePathOrDie("data", "鍵"), `data["鍵"]`},
		{"a field with an escape sequence", fieldpath.MakePathOrDie("data", "\x1b[2J\u202e"), `data["\x1b[2J\u202e"]`},
		{"an element by name", fieldpath.MakePathOrDie("containers", key("name", "web"), "image"), "containers[web].image"},
		{"an element whose name is a number", fieldpath.MakePathOrDie("containers", key("name", "0")), `containers[name="0"]`},
		{"an element by two keys", fieldpath.MakePathOrDie("ports", key("containerPort", int64(80), "protocol", "TCP")), "ports[containerPort=80,protocol=TCP]"},
		{"an element by another key", fieldpath.MakePathOrDie("volumeMounts", key("mountPath", "/data")), "volumeMounts[mountPath=/data]"},
		{"a key value that needs quotes", fieldpath.MakePathOrDie("x", key("type", "a]b,c")), `x[type="a]b,c"]`},
		{"a key value that reads as a boolean", fieldpath.MakePathOrDie("x", key("type", "true")), `x[type="true"]`},
		{"an element of a set", fieldpath.MakePathOrDie("finalizers", set("example.com/keep")), "finalizers[=example.com/keep]"},
		{"an element by index", fieldpath.MakePathOrDie("args", 2), "args[2]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := engine.PathString(tt.path); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
