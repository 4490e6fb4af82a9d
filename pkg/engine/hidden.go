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

// HideSecrets returns a value of JSON in which each value of each Secret is HiddenValue. What
// holds none is shared with the value, which is not modified.
func HideSecrets(value any) any {
	switch v := value.(type) {
	case []any:
		return hideItems(v, HideSecrets)
	case map[string]any:
		kind, _ := v["kind"].(string)
		version, _ := v["apiVersion"].(string)
		core := version == "" || version == "v1"
		if core && kind == "Secret" {
			return hideSecret(v)
		}
		return hideFields(v, func(name string, item any) any {
			items, isList := item.([]any)
			if core && kind == "SecretList" && name == "items" && isList { // they need not say what they are
				return hideItems(items, hideSecret)
			}
			return HideSecrets(item)
		})
	}
	return value
}

// HideObject is HideSecrets for an object; nil stays nil.
func HideObject(u *unstructured.Unstructured) *unstructured.Unstructured {
	if !IsSecret(u) {
		return u
	}
	hidden, _ := hideSecret(u.Object).(map[string]any)
	return &unstructured.Unstructured{Object: hidden}
}

// hideSecret hides what is secret in a Secret: its values, and older ones in an annotation.
func hideSecret(value any) any {
	secret, ok := value.(map[string]any)
	if !ok {
		return value
	}
	return hideFields(secret, func(name string, item any) any {
		switch name {
		case "data", "stringData":
			return hideAll(item)
		case "metadata":
			return hideField(item, "annotations", func(annotations any) any {
				return hideField(annotations, LastApplied, hideAll)
			})
		}
		return item
	})
}

// hideAll hides a value, or the values of a map.
func hideAll(value any) any {
	if fields, isMap := value.(map[string]any); isMap {
		return hideFields(fields, func(string, any) any { return HiddenValue })
	}
	if value == nil {
		return nil
	}
	return HiddenValue
}

func hideField(value any, name string, hide func(any) any) any {
	fields, ok := value.(map[string]any)
	if _, has := fields[name]; !ok || !has {
		return value
	}
	return hideFields(fields, func(field string, item any) any {
		if field == name {
			return hide(item)
		}
		return item
	})
}

func hideFields(fields map[string]any, hide func(name string, item any) any) map[string]any {
	out := fields
	for name, item := range fields {
		hidden := hide(name, item)
		if Identical(item, hidden) {
			continue
		}
		if Identical(out, fields) {
			out = maps.Clone(fields)
		}
		out[name] = hidden
	}
	return out
}

func hideItems(items []any, hide func(any) any) []any {
	out := items
	for i, item := range items {
		hidden := hide(item)
		if Identical(item, hidden) {
			continue
		}
		if Identical(out, items) {
			out = slices.Clone(items)
		}
		out[i] = hidden
	}
	return out
}
