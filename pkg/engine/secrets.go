package engine

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-openapi/jsonpointer"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
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

// IsHidden reports whether a string is hidden, or a part of it.
func IsHidden(text string) bool { return strings.Contains(text, HiddenValue) }

// HoldsHidden reports whether a value of JSON holds a string that is hidden, in whole or in
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
		if version, _ := v["apiVersion"].(string); (version == "" || version == "v1") &&
			(kind == "Secret" || kind == "SecretList") {
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

// HideObject returns an object in which the values of a Secret are HiddenValue, and older ones in an
// annotation. Another object, and nil, is returned as it is.
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

// Writes says where a rule writes, and where a value that it writes does not stand literally in its policy,
// but is computed or copied. What leads through a list goes for all of its items. The zero value is a place
// whose values are literal; nil stands for a rule of which nothing is known.
type Writes struct {
	Computed bool // the value, or a name in it
	Fields   map[string]*Writes
	Items    *Writes
}

// Field returns what is written to a field, which is made known.
func (w *Writes) Field(name string) *Writes {
	if w.Fields == nil {
		w.Fields = map[string]*Writes{}
	}
	if w.Fields[name] == nil {
		w.Fields[name] = &Writes{}
	}
	return w.Fields[name]
}

// Item returns what is written to the items of a list, which is made known.
func (w *Writes) Item() *Writes {
	if w.Items == nil {
		w.Items = &Writes{}
	}
	return w.Items
}

// At returns what is written at a JSON pointer, which is made known. A number may be the index of an item, or
// a name.
func (w *Writes) At(pointer string) *Writes {
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		below := w.Field(jsonpointer.Unescape(token))
		if _, err := strconv.Atoi(token); err == nil || token == "-" {
			below = w.Item()
			w.Fields[token] = below
		}
		w = below
	}
	return w
}

// Add adds what another rule writes.
func (w *Writes) Add(other *Writes) {
	if other == nil || other.Computed {
		*w = Writes{Computed: true}
	}
	if w.Computed {
		return
	}
	for name, field := range other.Fields {
		w.Field(name).Add(field)
	}
	if other.Items != nil {
		w.Item().Add(other.Items)
	}
}

// Computes reports whether a rule may write a value that does not stand literally in its policy.
func (w *Writes) Computes() bool {
	if w == nil || w.Computed || w.Items != nil && w.Items.Computes() {
		return true
	}
	for _, field := range w.Fields {
		if field.Computes() {
			return true
		}
	}
	return false
}

// Cover reports whether the path is one to which the rule writes, or leads to one, or is a part of one.
func (w *Writes) Cover(p fieldpath.Path) bool {
	for _, e := range p {
		switch {
		case w == nil:
			return false
		case w.Computed || w.Fields == nil && w.Items == nil:
			return true
		case e.FieldName == nil:
			w = w.Items
		default:
			w = w.Fields[*e.FieldName]
		}
	}
	return w != nil
}

// Taints reports whether the step writes what may have been made of a Secret.
func (s *Step) Taints() bool { return s.Confidential && s.Outcome == Changed && s.Writes.Computes() }
