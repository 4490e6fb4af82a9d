package touched

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// Masked is the change of an object without what the masker knows to be secret:
// masks stand in the place of such values, and their fields are Withheld. A nil
// masker leaves everything in.
func (t Touched) Masked(o Object, m *redact.Masker) Touched {
	if m == nil || len(t.Fields) == 0 {
		return t
	}
	before, after := t.object(o, t.Before), t.object(o, t.After)
	maskedBefore, maskedAfter := m.Pair(before, after)
	out := Touched{Before: part(maskedBefore), After: part(maskedAfter), Fields: make([]Field, len(t.Fields))}
	for i, f := range t.Fields {
		f.Withheld = f.Withheld || t.isSecret(before, f, m)
		f.Path = m.Path(f.Path)
		out.Fields[i] = f
	}
	return out
}

// Marked is the change of an object with everything in it; the fields that the
// masker knows to be secret say so.
func (t Touched) Marked(o Object, m *redact.Masker) Touched {
	before := t.object(o, t.Before)
	t.Fields = slices.Clone(t.Fields)
	for i := range t.Fields {
		t.Fields[i].Secret = t.Fields[i].Secret || t.isSecret(before, t.Fields[i], m)
	}
	return t
}

// isSecret tells whether a mask would hide something of a field.
func (t Touched) isSecret(object *unstructured.Unstructured, f Field, m *redact.Masker) bool {
	from, to := t.Values(f)
	hiddenFrom, _ := m.Value(object, f.names(), from, nil)
	hiddenTo, _ := m.Value(object, f.names(), to, nil)
	return !m.Path(f.Path).Equals(f.Path) || !diff.Same(from, hiddenFrom) || !diff.Same(to, hiddenTo)
}

// Values are those of a field before and after; nil where there is none.
func (t Touched) Values(f Field) (from, to any) {
	if f.Kind != engine.Added {
		from, _ = diff.Lookup(map[string]any(t.Before), f.Path)
	}
	if f.Kind != engine.Removed {
		to, _ = diff.Lookup(map[string]any(t.After), f.Path)
	}
	return from, to
}

// names are the fields of a path up to the first list element.
func (f *Field) names() []string {
	var names []string
	for _, e := range f.Path {
		if e.FieldName == nil {
			break
		}
		names = append(names, *e.FieldName)
	}
	return names
}

// identity is what a part lacks to be an object of its own.
func identity(o Object) map[string]any {
	metadata := map[string]any{"name": o.Name}
	if o.Namespace != "" {
		metadata["namespace"] = o.Namespace
	}
	if o.UID != "" {
		metadata["uid"] = string(o.UID)
	}
	return map[string]any{"apiVersion": o.APIVersion, "kind": o.Kind, "metadata": metadata}
}

// object is a part with its identity.
func (t Touched) object(o Object, p Part) *unstructured.Unstructured {
	out := identity(o)
	metadata := out["metadata"].(map[string]any)
	for k, v := range p {
		touched, ok := v.(map[string]any)
		if k != "metadata" || !ok {
			out[k] = v
			continue
		}
		touched = maps.Clone(touched)
		maps.Copy(touched, metadata)
		out[k] = touched
	}
	return &unstructured.Unstructured{Object: out}
}

// part is what is left of an object without the identity that was added.
func part(u *unstructured.Unstructured) Part {
	out := maps.Clone(u.Object)
	delete(out, "apiVersion")
	delete(out, "kind")
	metadata, _ := out["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	for _, name := range []string{"name", "namespace", "uid"} {
		delete(metadata, name)
	}
	if out["metadata"] = metadata; len(metadata) == 0 {
		delete(out, "metadata")
	}
	return out
}
