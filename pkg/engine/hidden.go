package engine

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// HiddenValue stands for a value of a Secret, and for what is computed from one, wherever
// it must not be shown.
const HiddenValue = "***"

// ErrHidden stands for a string that must not be shown.
var ErrHidden = errors.New("withheld: the rule reads a Secret; --show-secrets shows it")

// LastApplied is the annotation in which kubectl apply keeps the whole manifest.
const LastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// IsSecret reports whether an object is a core Secret.
func IsSecret(u *unstructured.Unstructured) bool {
	return u != nil && (ObjectKey{GroupKind: u.GroupVersionKind().GroupKind()}).IsSecret()
}

// IsSecret reports whether the key is that of a core Secret.
func (k ObjectKey) IsSecret() bool { return k.GroupKind == schema.GroupKind{Kind: "Secret"} }

// IsHidden reports whether a text is hidden, or a part of it.
func IsHidden(text string) bool { return strings.Contains(text, HiddenValue) }

// HoldsHidden reports whether a value of JSON holds a text that is hidden, in whole or in
// part.
func HoldsHidden(value any) bool {
	switch v := value.(type) {
	case string:
		return IsHidden(v)
	case []any:
		return slices.ContainsFunc(v, HoldsHidden)
	case map[string]any:
		for name, item := range v {
			if IsHidden(name) || HoldsHidden(item) {
				return true
			}
		}
	}
	return false
}

// HoldsSecret reports whether a value of JSON is a Secret, or holds one.
func HoldsSecret(value any) bool {
	switch v := value.(type) {
	case []any:
		return slices.ContainsFunc(v, HoldsSecret)
	case map[string]any:
		kind, _ := v["kind"].(string)
		if version, _ := v["apiVersion"].(string); (version == "" || version == "v1") && (kind == "Secret" || kind == "SecretList") {
			return true
		}
		for _, item := range v {
			if HoldsSecret(item) {
				return true
			}
		}
	}
	return false
}

// HideObject returns an object in which the values of a Secret are HiddenValue, and older ones in an annotation. Another
// object, and nil, is returned as it is.
func HideObject(u *unstructured.Unstructured) *unstructured.Unstructured {
	if !IsSecret(u) {
		return u
	}
	out := maps.Clone(u.Object)
	for _, name := range []string{"data", "stringData"} {
		if value, ok := out[name]; ok {
			out[name] = hideAll(value)
		}
	}
	metadata, _ := out["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if applied, ok := annotations[LastApplied]; ok {
		metadata, annotations = maps.Clone(metadata), maps.Clone(annotations)
		annotations[LastApplied] = hideAll(applied)
		metadata["annotations"], out["metadata"] = annotations, metadata
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
