package openapi_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/openapi"
)

const document = `{"components": {"schemas": {
	"Part": {"type": "object", "properties": {"id": {"type": "string"}, "self": {"$ref": "#/components/schemas/Part"}}},
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

func TestPatchMetaFollowsReferencesListsAndMaps(t *testing.T) {
	thing := patchOf(t)
	part, meta, err := thing.LookupPatchMetadataForSlice("parts")
	if err != nil || meta.GetPatchMergeKey() != "id" || !slices.Equal(meta.GetPatchStrategies(), []string{"merge", "retainKeys"}) {
		t.Fatalf("parts: %+v, %v", meta, err)
	}
	if part, _, err = part.LookupPatchMetadataForStruct("self"); err != nil {
		t.Fatal(err)
	}
	if _, _, err = part.LookupPatchMetadataForStruct("id"); err != nil {
		t.Error(err)
	}
	byName, _, err := thing.LookupPatchMetadataForStruct("byName")
	if err != nil {
		t.Fatal(err)
	}
	if part, _, err = byName.LookupPatchMetadataForStruct("anything"); err != nil || part.Name() != "object" {
		t.Errorf("a value of a map: %v", err)
	}
}

func TestPatchMetaOfMalformedSchemasIsAnError(t *testing.T) {
	thing := patchOf(t)
	for _, field := range []string{"odd", "lost", "bare", "absent"} {
		if _, _, err := thing.LookupPatchMetadataForSlice(field); err == nil {
			t.Errorf("%s as a list: no error", field)
		}
	}
	for _, field := range []string{"lost", "absent"} {
		if _, _, err := thing.LookupPatchMetadataForStruct(field); err == nil {
			t.Errorf("%s: no error", field)
		}
	}
	if bare, _, err := thing.LookupPatchMetadataForStruct("bare"); err != nil || bare.Name() != "object" {
		t.Errorf("bare: %v", err)
	}
}

func patchOf(t *testing.T) strategicpatch.LookupPatchMeta {
	t.Helper()
	d, err := openapi.Parse([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	if d.Schema(schema.GroupVersionKind{Group: "g", Version: "v2", Kind: "Thing"}).Known() {
		t.Error("a version that is not described has a schema")
	}
	s := d.Schema(schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "Thing"})
	if !s.Known() {
		t.Fatal("no schema")
	}
	return s.Patch
}
