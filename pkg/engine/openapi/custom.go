package openapi

// StoredTypeOf returns the form of custom resources with the openAPIV3Schema of a CustomResourceDefinition:
// unknown fields and forbidden nulls are pruned, and defaults are set.
func StoredTypeOf(s map[string]any) *Type {
	t := fromSchema(s)
	t.addMetadata()
	return t
}

// addMetadata adds the fields of every object.
func (t *Type) addMetadata() {
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		if t.fields != nil {
			t.fields[name] = &field{Type: &Type{}, pointer: true}
		}
	}
}

func fromSchema(s map[string]any) *Type {
	t := &Type{}
	below := func(name string) *Type {
		if of, ok := s[name].(map[string]any); ok {
			return fromSchema(of)
		}
		return nil
	}
	if t.element = below("items"); t.element == nil {
		t.element = below("additionalProperties")
	}
	properties, ok := s["properties"].(map[string]any)
	if !ok {
		return t
	}
	open, _ := s["x-kubernetes-preserve-unknown-fields"].(bool)
	t.prunes = !open && t.element == nil
	t.fields, t.defaults = map[string]*field{}, map[string]any{}
	for name, of := range properties {
		of, _ := of.(map[string]any)
		nullable, _ := of["nullable"].(bool)
		t.fields[name] = &field{Type: fromSchema(of), pointer: true, nullable: nullable}
		if v, has := of["default"]; has {
			t.defaults[name] = v
		}
	}
	if embedded, _ := s["x-kubernetes-embedded-resource"].(bool); embedded {
		t.addMetadata()
	}
	return t
}
