package openapi

import (
	"fmt"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

const (
	patchStrategyExtension = "x-kubernetes-patch-strategy"
	patchMergeKeyExtension = "x-kubernetes-patch-merge-key"
	componentPrefix        = "/components/schemas/"
)

// patchMeta looks up patch strategies in OpenAPI v3 schemas. Unlike
// strategicpatch.PatchMetaFromOpenAPIV3 it takes nothing about a schema for
// granted: schemas of custom and aggregated resources are anybody's, and a
// malformed one must be an error and not a panic.
type patchMeta struct{ typed }

// typed is a schema of a document.
type typed struct {
	*Document
	schema *spec.Schema
}

var _ strategicpatch.LookupPatchMeta = patchMeta{}

// LookupPatchMetadataForStruct finds a field that holds an object or a scalar.
func (p patchMeta) LookupPatchMetadataForStruct(key string) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	field, err := p.field(key)
	if err != nil {
		return nil, strategicpatch.PatchMeta{}, err
	}
	next, err := p.resolve(field)
	return patchMeta{next}, metaOf(field), err
}

// LookupPatchMetadataForSlice finds a field that holds a list, and answers for
// its elements.
func (p patchMeta) LookupPatchMetadataForSlice(key string) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	field, err := p.field(key)
	if err != nil {
		return nil, strategicpatch.PatchMeta{}, err
	}
	list, err := p.resolve(field)
	if err != nil {
		return nil, strategicpatch.PatchMeta{}, err
	}
	items := list.schema.Items
	if items == nil || items.Schema == nil {
		return nil, strategicpatch.PatchMeta{}, fmt.Errorf("field %q is no list in the OpenAPI schema", key)
	}
	next, err := p.resolve(items.Schema)
	return patchMeta{next}, metaOf(field), err
}

// Name names the type of the schema in messages.
func (p patchMeta) Name() string {
	if len(p.schema.Type) == 0 {
		return "object"
	}
	return strings.Join(p.schema.Type, "")
}

// field finds a property, or the value of any key where the schema is a map.
func (p patchMeta) field(key string) (*spec.Schema, error) {
	if property, ok := p.properties()[key]; ok {
		return property, nil
	}
	if values := p.schema.AdditionalProperties; values != nil && values.Schema != nil {
		return values.Schema, nil
	}
	return nil, fmt.Errorf("unable to find api field %q", key)
}

// properties returns the fields of the schema by name. They are large, and a map gives only copies
// of its values, so each schema's are copied once.
func (t typed) properties() map[string]*spec.Schema {
	if known, ok := t.fields.Load(t.schema); ok {
		return known.(map[string]*spec.Schema) //nolint:forcetypeassert // nothing else is stored
	}
	out := make(map[string]*spec.Schema, len(t.schema.Properties))
	for name, property := range t.schema.Properties {
		out[name] = &property
	}
	t.fields.Store(t.schema, out)
	return out
}

// resolve follows the reference of a schema, which published documents wrap in
// a single allOf.
func (t typed) resolve(s *spec.Schema) (typed, error) {
	if len(s.AllOf) == 1 {
		s = &s.AllOf[0]
	}
	ref := s.Ref.GetURL()
	if ref == nil || *ref == (url.URL{}) {
		return typed{t.Document, s}, nil
	}
	component := t.components[strings.TrimPrefix(ref.Fragment, componentPrefix)]
	if component == nil || !s.Ref.HasFragmentOnly {
		return typed{}, fmt.Errorf("unable to resolve %q in the OpenAPI schema", ref)
	}
	return typed{t.Document, component}, nil
}

func metaOf(s *spec.Schema) strategicpatch.PatchMeta {
	var meta strategicpatch.PatchMeta
	if key, ok := s.Extensions[patchMergeKeyExtension].(string); ok {
		meta.SetPatchMergeKey(key)
	}
	if strategy, ok := s.Extensions[patchStrategyExtension].(string); ok {
		meta.SetPatchStrategies(strings.Split(strategy, ","))
	}
	return meta
}
