package engine

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// HiddenValue replaces values of a Secret, and values computed from one, wherever they must not be shown.
const HiddenValue = "***"

// ErrHidden stands for a string that must not be shown.
var ErrHidden = errors.New("withheld: the rule reads a Secret; --show-secrets shows it")

// LastApplied is the annotation in which kubectl apply keeps the whole manifest.
const LastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// IsSecret reports whether an object is a core Secret.
func IsSecret(u *unstructured.Unstructured) bool {
	return u != nil && (ObjectKey{GroupKind: u.GroupVersionKind().GroupKind()}).IsSecret()
}

// IsSecret reports whether the key names a core Secret.
func (k ObjectKey) IsSecret() bool { return k.GroupKind == schema.GroupKind{Kind: "Secret"} }

// IsHidden reports whether a string, or a part of it, is hidden.
func IsHidden(text string) bool { return strings.Contains(text, HiddenValue) }

// MayHoldSecret reports whether a JSON answer may hold a Secret, or a list of them.
func MayHoldSecret(answer []byte) bool { return bytes.Contains(answer, []byte(`"Secret`)) }

// HideObject returns an object with HiddenValue for the values of a Secret, and for older ones in an
// annotation. Another object, and nil, is returned as it is.
func HideObject(u *unstructured.Unstructured) *unstructured.Unstructured {
	if !IsSecret(u) {
		return u
	}
	applied := Write{Path: []string{"metadata", "annotations", LastApplied}}
	out, _ := applied.Hide(maps.Clone(u.Object)).(map[string]any)
	for _, name := range []string{"data", "stringData"} {
		if value, ok := out[name]; ok {
			out[name] = hideAll(value)
		}
	}
	return &unstructured.Unstructured{Object: out}
}

// hideAll hides a value, or the values of a map.
func hideAll(value any) any {
	if value == nil {
		return nil
	}
	fields, isMap := value.(map[string]any)
	if !isMap {
		return HiddenValue
	}
	out := make(map[string]any, len(fields))
	for name := range fields {
		out[name] = HiddenValue
	}
	return out
}

// Write is a place to which a rule writes.
type Write struct {
	// Path has field names and, in brackets, placeholders for all items of a list: "[]", and the "[0]" and "[-]"
	// of a JSON pointer, which may be names as well.
	Path []string
	// Computed says that the value, or a name in it, is not literal in the policy.
	Computed bool
}

// Hide returns a JSON value without its content at the place, and shares the rest.
func (w Write) Hide(value any) any {
	if len(w.Path) == 0 {
		return HiddenValue
	}
	name, below := w.Path[0], Write{Path: w.Path[1:]}
	switch v := value.(type) {
	case map[string]any:
		if _, ok := v[name]; !ok {
			name = strings.Trim(name, "[]")
		}
		if item, ok := v[name]; ok {
			v = maps.Clone(v)
			v[name] = below.Hide(item)
			return v
		}
	case []any:
		if strings.HasPrefix(name, "[") {
			v = slices.Clone(v)
			for i := range v {
				v[i] = below.Hide(v[i])
			}
			return v
		}
	}
	return value
}

// meets reports whether the path is the place, leads to it, or is a part of it.
func (w Write) meets(p fieldpath.Path) bool {
	for i := range min(len(p), len(w.Path)) {
		name, token := p[i].FieldName, w.Path[i]
		if name == nil && !strings.HasPrefix(token, "[") ||
			name != nil && *name != token && "["+*name+"]" != token {
			return false
		}
	}
	return true
}

// Writes are the places to which a rule writes; none for an unknown rule.
type Writes []Write

// Computes reports whether a rule may write a value that is not literal in its policy.
func (w Writes) Computes() bool {
	return len(w) == 0 || slices.ContainsFunc(w, func(place Write) bool { return place.Computed })
}

// Cover reports whether the rule writes to all paths of fields.
func (w Writes) Cover(fields []FieldChange) bool {
	return !slices.ContainsFunc(fields, func(f FieldChange) bool {
		return !slices.ContainsFunc(w, func(place Write) bool { return place.meets(f.Path) })
	})
}

// Taints reports whether the step may write content made from a Secret.
func (s *Step) Taints() bool { return s.Confidential && s.Outcome == Changed && s.Writes.Computes() }
