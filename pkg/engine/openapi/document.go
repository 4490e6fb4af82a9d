package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// kindExtension is the extension of a component schema that lists the kinds it describes.
const kindExtension = "x-kubernetes-group-version-kind"

// Document holds the component schemas of one API group version. It is immutable and safe for concurrent use.
type Document struct {
	components map[string]*spec.Schema
	kinds      map[schema.GroupVersionKind]engine.Schema
	fields     sync.Map // the properties of each schema that needed them
}

// Parse reads a document that an API server publishes under /openapi/v3. It reads only the components: the
// paths are most of its size and say nothing about how objects merge.
func Parse(data []byte) (*Document, error) {
	var doc struct {
		Components struct {
			Schemas map[string]*spec.Schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("read OpenAPI v3 document: %w", err)
	}
	return newDocument(doc.Components.Schemas)
}

func newDocument(components map[string]*spec.Schema) (*Document, error) {
	types, err := managedfields.NewTypeConverter(components, false)
	if err != nil {
		return nil, fmt.Errorf("read OpenAPI v3 component schemas: %w", err)
	}
	nonNull := sync.OnceValue(func() managedfields.TypeConverter {
		open := make(map[string]*spec.Schema, len(components))
		for name, s := range components {
			open[name] = nonNull(s)
		}
		types, err := managedfields.NewTypeConverter(open, false)
		if err != nil {
			return nil // nothing is certain
		}
		return types
	})
	d := &Document{components: components, kinds: map[schema.GroupVersionKind]engine.Schema{}}
	// if two describe a kind, always the same one
	for _, name := range slices.Sorted(maps.Keys(components)) {
		for _, gvk := range describedKinds(components[name]) {
			d.kinds[gvk] = engine.Schema{
				Types: types, NonNull: nonNull, Fields: validator{typed{d, components[name]}, gvk.Group},
			}
		}
	}
	return d, nil
}

// nonNull returns a schema with its nullable parts left open.
func nonNull(s *spec.Schema) *spec.Schema {
	if s == nil {
		return nil
	}
	out := *s
	if s.Nullable {
		out = spec.Schema{}
		out.AddExtension("x-kubernetes-preserve-unknown-fields", true)
		return &out
	}
	if s.Items != nil {
		out.Items = &spec.SchemaOrArray{Schema: nonNull(s.Items.Schema)}
	}
	if s.AdditionalProperties != nil {
		out.AdditionalProperties = &spec.SchemaOrBool{
			Allows: s.AdditionalProperties.Allows, Schema: nonNull(s.AdditionalProperties.Schema),
		}
	}
	out.Properties = make(map[string]spec.Schema, len(s.Properties))
	for name, p := range s.Properties {
		out.Properties[name] = *nonNull(&p)
	}
	return &out
}

// Schema returns the schema of one kind; the zero value when the document does not describe the kind.
func (d *Document) Schema(gvk schema.GroupVersionKind) engine.Schema { return d.kinds[gvk] }

// describedKinds reads the extension that names the kinds of a component.
func describedKinds(component *spec.Schema) []schema.GroupVersionKind {
	if component == nil {
		return nil
	}
	list, _ := component.Extensions[kindExtension].([]any)
	var kinds []schema.GroupVersionKind
	for _, item := range list {
		m, _ := item.(map[string]any)
		group, _ := m["group"].(string)
		version, _ := m["version"].(string)
		kind, _ := m["kind"].(string)
		if kind != "" {
			kinds = append(kinds, schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
		}
	}
	return kinds
}

// objectMeta is the part of ObjectMeta that decides how metadata merges; an API server adds all of it to the
// published schemas of custom resources, whose authors leave it out.
const objectMeta = `{"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
	"labels": {"type": "object", "additionalProperties": {"type": "string"}},
	"annotations": {"type": "object", "additionalProperties": {"type": "string"}},
	"finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
	"ownerReferences": {"type": "array", "x-kubernetes-list-type": "map",
		"x-kubernetes-list-map-keys": ["uid"], "items": {
		"type": "object", "x-kubernetes-map-type": "atomic", "x-kubernetes-preserve-unknown-fields": true,
		"properties": {"uid": {"type": "string"}}}}}}`

// FromCustomResource makes the document of one version of a custom resource from the openAPIV3Schema of its
// definition.
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
