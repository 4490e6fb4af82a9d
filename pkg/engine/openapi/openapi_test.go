package openapi_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/openapi"
)

const document = `{"components": {"schemas": {
	"Part": {"type": "object", "properties": {"id": {"type": "string"}, "self": {"$ref": "#/components/schemas/Part"}, "tags": {"type": "array", "items": {"type": "string"}}}},
	"Thing": {"type": "object",
		"x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "Thing"}, {"kind": 1}, null],
		"properties": {
			"parts": {"type": "array", "items": {"allOf": [{"$ref": "#/components/schemas/Part"}]},
				"x-kubernetes-patch-merge-key": "id", "x-kubernetes-patch-strategy": "merge,retainKeys"},
			"byName": {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/Part"}},
			"odd": {"type": "object", "x-kubernetes-patch-merge-key": 1},
			"lost": {"$ref": "#/components/schemas/Nowhere"},
			"bare": {}
		}}}}}`

func TestListPatch(t *testing.T) {
	d, err := openapi.Parse([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	if d.Schema(schema.GroupVersionKind{Group: "g", Version: "v2", Kind: "Thing"}).Known() {
		t.Error("a version that is not described has a schema")
	}
	thing := d.Schema(schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "Thing"}).Fields
	for path, want := range map[string]string{
		"parts": "[merge retainKeys] id true", "parts..self.tags": "[]  true", "byName.anything.tags": "[]  true",
		"odd": "[]  false", "lost": "[]  false", "bare": "[]  false", "absent": "[]  false", "odd.": "[]  false", "parts.self": "[]  false",
	} {
		strategies, key, known := thing.ListPatch(strings.Split(path, "."))
		if got := fmt.Sprintf("%v %s %t", strategies, key, known); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
