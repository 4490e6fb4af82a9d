package diff

import (
	"reflect"
	"slices"
	"strings"
	"unique"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Own returns the same change in memory of its own. The texts of an object that was listed are parts
// of its whole text, which each of them keeps alive.
func (p Partial) Own() Partial {
	p.Before, p.After = ownPart(p.Before), ownPart(p.After)
	p.Fields = slices.Clone(p.Fields)
	for i := range p.Fields {
		f := &p.Fields[i]
		f.Path, f.From, f.To = OwnPath(f.Path), own(f.From), own(f.To)
	}
	return p
}

// Sharing returns the change with the states of another one in place of equal ones, of which there may be very many.
func (p Partial) Sharing(other Partial) Partial {
	if reflect.DeepEqual(p.Before, other.Before) {
		p.Before = other.Before
	}
	if reflect.DeepEqual(p.After, other.After) {
		p.After = other.After
	}
	return p
}

// OwnPath returns the same path in memory of its own, as Partial.Own.
func OwnPath(p fieldpath.Path) fieldpath.Path {
	p = slices.Clone(p)
	for i := range p {
		e := &p[i]
		switch {
		case e.FieldName != nil:
			name := unique.Make(*e.FieldName).Value()
			e.FieldName = &name
		case e.Key != nil:
			keys := e.Key.Copy()
			for j := range keys {
				keys[j] = value.Field{Name: unique.Make(keys[j].Name).Value(), Value: ownValue(keys[j].Value)}
			}
			e.Key = &keys
		case e.Value != nil:
			v := ownValue(*e.Value)
			e.Value = &v
		}
	}
	return p
}

func ownValue(v value.Value) value.Value { return value.NewValueInterface(own(v.Unstructured())) }

func ownPart(p Part) Part {
	m, _ := own(map[string]any(p)).(map[string]any)
	return m
}

func own(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if v == nil {
			return v
		}
		out := make(map[string]any, len(v))
		for key, below := range v {
			out[unique.Make(key).Value()] = own(below)
		}
		return out
	case []any:
		if v == nil {
			return v
		}
		out := make([]any, len(v))
		for i, below := range v {
			out[i] = own(below)
		}
		return out
	case string:
		return strings.Clone(v)
	}
	return v
}
