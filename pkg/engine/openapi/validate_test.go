package openapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/openapi"
)

// thing is the schema of a custom resource.
const thing = `{
	"type": "object", "properties": {"spec": {"type": "object", "required": ["size"], "properties": {
	"size": {"type": "integer", "enum": [1, 2, 3]}, "port": {"x-kubernetes-int-or-string": true},
	"any": {"x-kubernetes-preserve-unknown-fields": true}, "some": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {"type": "string"}}},
	"template": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}},
	"ratio": {"type": "number"}, "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"],
		"items": {"type": "object", "required": ["id", "kind"], "properties": {"id": {"type": "string"}, "kind": {"type": "string", "default": "x"}}}},
	 "byName": {"type": "object", "additionalProperties": {"type": "boolean"}}}}}}`

func TestValidate(t *testing.T) {
	crd, err := openapi.FromCustomResource(schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Thing"}, decode[map[string]any](t, thing))
	if err != nil {
		t.Fatal(err)
	}
	container := fieldpath.KeyByFields("name", "app")
	for _, test := range []struct {
		kind  string
		at    fieldpath.Path
		value string // JSON; empty for none
		want  string
	}{
		{"Pod", fieldpath.MakePathOrDie("spec", "containers", container, "securityContext", "allowPrivilegeEscalation"), `"false"`, "has to be a boolean, and is a string"},
		{"Pod", fieldpath.MakePathOrDie("spec", "containers", container, "securityContext", "allowPrivilegeEscalation"), `false`, ""},
		{"Pod", fieldpath.MakePathOrDie("spec", "containers", container, "imagePullPolcy"), `"Always"`, "is not in the schema of the kind"},
		{"Pod", fieldpath.MakePathOrDie("spec", "containers", container, "imagePullPolcy"), ``, ""},
		{"Pod", fieldpath.MakePathOrDie("spec", "containers", container, "imagePullPolicy"), `"always"`, "has to be one of Always, IfNotPresent, Never"},
		{"Pod", fieldpath.MakePathOrDie("spec", "containers", container), `{"name": "app", "image": "x", "ports": [{"containerPort": "80"}]}`, "spec.containers[app].ports[0].containerPort has to be an integer, and is a string"},
		{"Pod", fieldpath.MakePathOrDie("spec", "containers"), ``, "is required"},
		{"Pod", fieldpath.MakePathOrDie("spec", "containers", container, "name"), ``, "is required"},
		{"Pod", fieldpath.MakePathOrDie("spec", "containers", container, "image"), ``, ""},
		{"Pod", fieldpath.MakePathOrDie("spec", "containers", container, "resources", "limits", "cpu"), `"1"`, ""},
		{"Pod", fieldpath.MakePathOrDie("spec", "containers", container, "resources", "limits", "cpu"), `0.5`, ""},
		{"Pod", fieldpath.MakePathOrDie("spec", "containers", container, "resources", "limits", "cpu"), `true`, "has to be a string or a number, and is a boolean"},
		{"Pod", fieldpath.MakePathOrDie("spec", "containers", container, "livenessProbe", "httpGet", "port"), `"http"`, ""},
		{"Pod", fieldpath.MakePathOrDie("spec", "priority"), `1.5`, "has to be an integer, and is a number"},
		{"Pod", fieldpath.MakePathOrDie("metadata", "labels"), `{"a": 1}`, "metadata.labels.a has to be a string, and is an integer"},
		{"Pod", fieldpath.MakePathOrDie("metadata", "labels"), `["a"]`, "has to be an object, and is an array"},
		{"Pod", fieldpath.MakePathOrDie("metadata", "creationTimestamp"), `"2026-01-01T00:00:00Z"`, ""},
		{"Pod", fieldpath.MakePathOrDie("metadata", "managedFields", 0, "fieldsV1"), `{"f:a": {}}`, ""},
		{"Pod", fieldpath.MakePathOrDie("spec"), ``, "spec.containers is required"},
		{"Pod", fieldpath.MakePathOrDie("status"), ``, ""},
		{"Pod", fieldpath.MakePathOrDie("spec", "containers", fieldpath.KeyByFields("name", "")), `{"image": "x"}`, `spec.containers[name=""].name is required`},
		{"Pod", fieldpath.MakePathOrDie("spec", "initContainers"), `[{"image": "x"}, {"name": "b"}]`, "spec.initContainers[0].name is required; spec.initContainers[1].image is required"},
		{"Pod", fieldpath.MakePathOrDie("spec", "containers", container), `{"name": "app", "ports": [{"protocol": "TCP"}], "env": [{"value": "a"}]}`, "spec.containers[app].image is required; spec.containers[app].env[0].name is required; spec.containers[app].ports[0].containerPort is required"},
		{"Pod", fieldpath.MakePathOrDie("spec", "containers", container, "livenessProbe"), `{"httpGet": {"port": 80, "httpHeaders": [{"name": "x"}]}}`, ""}, // a zero value does
		{"Pod", fieldpath.MakePathOrDie("spec", "volumes"), `[{"name": "a", "iscsi": {"iqn": "a", "targetPortal": "b"}}]`, ""},
		{"Thing", fieldpath.MakePathOrDie("spec"), `{"port": 1}`, "spec.size is required"},
		{"Thing", fieldpath.MakePathOrDie("spec", "parts"), `[{"id": "a"}, {"kind": "b"}]`, "spec.parts[1].id is required"},
		{"ConfigMap", fieldpath.MakePathOrDie("data", "retries"), `3`, "has to be a string, and is an integer"},
		{"ConfigMap", fieldpath.MakePathOrDie("spec"), `{"a": 1}`, "is not in the schema of the kind"},
		{"Thing", fieldpath.MakePathOrDie("spec", "size"), `4`, "has to be one of 1, 2, 3"},
		{"Thing", fieldpath.MakePathOrDie("spec", "size"), ``, "is required"},
		{"Thing", fieldpath.MakePathOrDie("spec", "port"), `true`, "has to be an integer or a string, and is a boolean"},
		{"Thing", fieldpath.MakePathOrDie("spec", "ratio"), `1`, ""},
		{"Thing", fieldpath.MakePathOrDie("spec", "any", "thing"), `[1]`, ""},
		{"Thing", fieldpath.MakePathOrDie("spec", "some"), `{"a": 1, "b": 1}`, "spec.some.a has to be a string, and is an integer"},
		{"Thing", fieldpath.MakePathOrDie("spec", "template"), `{"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {}}`, ""},
		{"Thing", fieldpath.MakePathOrDie("spec", "template"), `{"status": {}}`, "spec.template.status is not in the schema of the kind"},
		{"Thing", fieldpath.MakePathOrDie("spec", "byName", "x"), `"yes"`, "has to be a boolean, and is a string"},
		{"Thing", fieldpath.MakePathOrDie("spec", "other"), `1`, "is not in the schema of the kind"},
	} {
		gvk := schema.GroupVersionKind{Version: "v1", Kind: test.kind}
		d := crd
		if test.kind == "Thing" {
			gvk.Group = "example.org"
		} else if d, err = openapi.Builtin(gvk); err != nil {
			t.Fatal(err)
		}
		var value any
		if test.value != "" {
			value = decode[any](t, test.value)
		}
		var got []string
		for _, f := range d.Schema(gvk).Fields.Validate(test.at, value) {
			why := f.Why
			if !f.Path.Equals(test.at) {
				why = engine.PathString(f.Path) + " " + why
			}
			got = append(got, why)
		}
		if found := strings.Join(got, "; "); found != test.want {
			t.Errorf("%s %s = %s: got %q, want %q", test.kind, test.at, test.value, found, test.want)
		}
	}
}

func decode[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}
