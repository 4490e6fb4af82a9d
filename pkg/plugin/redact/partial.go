package redact

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// Partial returns the change of an object without what the masker knows to be
// secret: masks stand in the place of such values, and their fields are Withheld. A
// nil masker leaves everything in.
func Partial(m *Masker, p diff.Partial, key engine.ObjectKey) diff.Partial {
	if m == nil || len(p.Fields) == 0 {
		return p
	}
	p = withoutSecrets(p)
	before, after := p.Before.Object(key), p.After.Object(key)
	maskedBefore, maskedAfter := m.Pair(before, after)
	fields := slices.Clone(p.Fields)
	for i := range fields {
		f := &fields[i]
		f.Withheld = f.Withheld || isSecret(m, p, before, *f)
		f.Path = m.Path(f.Path)
	}
	p.Fields = fields
	return p.WithStates(diff.PartOf(maskedBefore), diff.PartOf(maskedAfter))
}

// withoutSecrets returns a change without the values of the fields that were made of a Secret.
func withoutSecrets(p diff.Partial) diff.Partial {
	before, after := any(map[string]any(p.Before)), any(map[string]any(p.After))
	fields := slices.Clone(p.Fields)
	for i := range fields {
		f := &fields[i]
		if !f.Secret {
			continue
		}
		f.Secret, f.Withheld = false, true
		from, to := engine.HiddenValue, engine.HiddenValue
		if f.Kind == engine.Replaced {
			from, to = from+beforeSuffix, to+afterSuffix
		}
		before, after = diff.With(before, f.Path, from), diff.With(after, f.Path, to)
	}
	p.Fields = fields
	return p.WithStates(partOf(before), partOf(after))
}

func partOf(v any) diff.Part { part, _ := v.(map[string]any); return part }

// MarkSecrets returns the change of an object with everything in it; the fields
// that the masker knows to be secret are marked as Secret.
func MarkSecrets(m *Masker, p diff.Partial, key engine.ObjectKey) diff.Partial {
	before := p.Before.Object(key)
	p.Fields = slices.Clone(p.Fields)
	for i := range p.Fields {
		p.Fields[i].Secret = p.Fields[i].Secret || isSecret(m, p, before, p.Fields[i])
	}
	return p
}

// isSecret reports whether a mask would hide something of a field.
func isSecret(m *Masker, p diff.Partial, object *unstructured.Unstructured, f engine.FieldChange) bool {
	from, to := p.Contents(f)
	hiddenFrom, _ := m.Value(object, engine.FieldNames(f.Path), from, nil)
	hiddenTo, _ := m.Value(object, engine.FieldNames(f.Path), to, nil)
	return !m.Path(f.Path).Equals(f.Path) || !diff.Same(from, hiddenFrom) || !diff.Same(to, hiddenTo)
}
