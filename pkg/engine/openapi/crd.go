package openapi

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// objectMeta is the part of ObjectMeta that decides how metadata merges; an API
// server puts the whole of it into the schemas that it publishes for custom
// resources, whose authors leave it out.
const objectMeta = `{"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
	"labels": {"type": "object", "additionalProperties": {"type": "string"}},
	"annotations": {"type": "object", "additionalProperties": {"type": "string"}},
	"finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
	"ownerReferences": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"], "items": {
		"type": "object", "x-kubernetes-map-type": "atomic", "x-kubernetes-preserve-unknown-fields": true,
		"properties": {"uid": {"type": "string"}}}}}}`

// FromCustomResource makes the document of one version of a custom resource
// from the openAPIV3Schema of its definition.
func FromCustomResource(gvk schema.GroupVersionKind, openAPIV3Schema map[string]any) (*Document, error) {
	data, err := json.Marshal(openAPIV3Schema)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", gvk, err)
	}
	var object, metadata spec.Schema
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, fmt.Errorf("schema of %s: %w", gvk, err)
	}
	if err := json.Unmarshal([]byte(objectMeta), &metadata); err != nil {
		return nil, fmt.Errorf("schema of %s: metadata: %w", gvk, err)
	}
	if object.Properties == nil {
		object.Properties = map[string]spec.Schema{}
	}
	object.Properties["apiVersion"] = *spec.StringProperty()
	object.Properties["kind"] = *spec.StringProperty()
	object.Properties["metadata"] = metadata
	object.AddExtension(kindExtension, []any{map[string]any{
		"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind,
	}})
	return newDocument(map[string]*spec.Schema{gvk.Kind: &object})
}
