package engine_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

func TestObjectKeyJSON(t *testing.T) {
	for _, c := range []struct {
		key  engine.ObjectKey
		want string
	}{
		{
			engine.ObjectKey{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Version: "v1", Namespace: "n", Name: "a", UID: "u", Subresource: "status"},
			`{"apiVersion":"apps/v1","kind":"Deployment","subresource":"status","namespace":"n","name":"a","uid":"u"}`,
		},
		{
			engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "Node"}, Version: "v1", Name: "a"},
			`{"apiVersion":"v1","kind":"Node","name":"a"}`,
		},
	} {
		var read engine.ObjectKey
		if got := reread(t, c.key, &read); got != c.want || read != c.key {
			t.Errorf("got %s, read as %#v", got, read)
		}
	}
}

func TestStepJSON(t *testing.T) {
	rule := engine.RuleRef{Dialect: "kyverno", Policy: "p", Rule: "r"}
	step := engine.Step{
		Rule: rule, Outcome: engine.Failed, AsCreated: true, NotIdempotent: "it reads a clock",
		TriggeredBy: &engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Version: "v1", Name: "t"},
		Fields:      []engine.FieldChange{{Path: fieldpath.MakePathOrDie("data", "a")}}, Warnings: []engine.Warning{"w"},
		Err: errors.New("broken \xff text"),
	}
	var read engine.Step
	got := reread(t, step, &read)
	want := `{"dialect":"kyverno","policy":"p","rule":"r","outcome":"failed","asCreated":true,"notIdempotent":"it reads a clock",` +
		`"trigger":{"apiVersion":"v1","kind":"ConfigMap","name":"t"},"reason":"broken � text","fields":["data.a"],"warnings":["w"]}`
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if read.Rule != rule || read.Outcome != engine.Failed || read.Trigger() != step.Trigger() || read.Err == nil || read.Fields != nil {
		t.Errorf("read %+v", read)
	}
}

func TestFieldChangeJSON(t *testing.T) {
	f := engine.FieldChange{
		Path: fieldpath.MakePathOrDie("spec", "containers", fieldpath.KeyElementByFields("name", "web"), "image"),
		Kind: engine.Replaced, From: "a", To: "b", Writer: &engine.RuleRef{Dialect: "kyverno", Policy: "p"}, Withheld: true,
	}
	var read engine.FieldChange
	got := reread(t, f, &read)
	want := `{"path":"spec.containers[web].image","elements":["f:spec","f:containers","k:{\"name\":\"web\"}","f:image"],` +
		`"kind":"replaced","withheld":true,"rule":{"dialect":"kyverno","policy":"p"}}`
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if read.From != nil || !read.Path.Equals(f.Path) || read.Kind != f.Kind || read.Rule() != f.Rule() || !read.Withheld {
		t.Errorf("read %+v", read)
	}
	for _, text := range []string{`{"kind":"added"}`, `{"elements":["f:a"],"kind":"renamed"}`, `{"elements":["x:a"],"kind":"added"}`} {
		if err := json.Unmarshal([]byte(text), &read); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
}

// reread writes a value, reads it back, and returns its text.
func reread(t *testing.T, in, out any) string {
	t.Helper()
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, out); err != nil {
		t.Fatal(err)
	}
	return string(text)
}
