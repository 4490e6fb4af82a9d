package openapi

import (
	"fmt"
	"net/url"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

const (
	patchStrategyExtension = "x-kubernetes-patch-strategy"
	patchMergeKeyExtension = "x-kubernetes-patch-merge-key"
	componentPrefix        = "/components/schemas/"
)

// typed is a schema of a document. Anybody writes the schemas of custom and aggregated resources, so it takes
// nothing about a schema for granted.
type typed struct {
	*Document
	schema *spec.Schema
}

// ListPatch implements engine.FieldValidator.
func (v validator) ListPatch(path []string) (strategies []string, key string, known bool) {
	t, field := v.typed, v.schema
	for _, name := range path {
		if field, _ = t.property(name); name == "" {
			field = t.items()
		}
		if field == nil {
			return nil, "", false
		}
		if t, known = t.to(field); !known {
			return nil, "", false
		}
	}
	strategy, _ := field.Extensions[patchStrategyExtension].(string)
	key, _ = field.Extensions[patchMergeKeyExtension].(string)
	return strings.Split(strategy, ","), key, t.items() != nil
}

// items returns the schema of the elements of a list; nil if there is none.
func (t typed) items() *spec.Schema {
	if t.schema.Items == nil {
		return nil
	}
	return t.schema.Items.Schema
}

// properties returns the fields of the schema by name. They are large, and a map gives only copies of its
// values, so each schema's are copied once.
func (t typed) properties() map[string]*spec.Schema {
	if known, ok := t.fields.Load(t.schema); ok {
		return known.(map[string]*spec.Schema) // nothing else is stored
	}
	out := make(map[string]*spec.Schema, len(t.schema.Properties))
	for name, property := range t.schema.Properties {
		out[name] = &property
	}
	t.fields.Store(t.schema, out)
	return out
}

// resolve follows the reference of a schema, which published documents wrap in a single allOf.
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
