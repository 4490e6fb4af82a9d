package redact

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// What replaces a value: the words of kubectl diff.
const (
	Mask         = engine.HiddenValue
	beforeSuffix = " (before)"
	afterSuffix  = " (after)"
)

// longName is the length from which a value is masked in the name of a field.
const longName = 16

// Masker masks the values of Secrets. The zero value is ready for use and has learned
// nothing yet; a nil Masker shows everything. It is safe for concurrent use.
type Masker struct {
	values values
	blind  bool
}

// Blind returns a Masker that masks nothing, for tests of what the first guard alone lets through. It is
// not nil, which shows what was made of Secrets.
func Blind() *Masker { return &Masker{blind: true} }

// Learn remembers the values of a Secret. It ignores other objects.
func (m *Masker) Learn(u *unstructured.Unstructured) {
	if m == nil || m.blind || !engine.IsSecret(u) {
		return
	}
	// The namespace in a service account's token is public.
	token := u.Object["type"] == "kubernetes.io/service-account-token"
	data, _ := u.Object["data"].(map[string]any)
	for k, v := range data {
		encoded, ok := v.(string)
		if !ok || (token && k == "namespace") {
			continue
		}
		m.values.add(encoded)
		m.values.add(base64.StdEncoding.EncodeToString([]byte(encoded)))
		if clear, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			m.learnClear(string(clear))
		}
	}
	stringData, _ := u.Object["stringData"].(map[string]any)
	for _, v := range stringData {
		if clear, ok := v.(string); ok {
			m.values.add(base64.StdEncoding.EncodeToString([]byte(clear)))
			m.learnClear(clear)
		}
	}
	m.learnApplied(u)
}

// learnApplied learns the values that a Secret had when it was applied: kubectl apply keeps them in an annotation.
func (m *Masker) learnApplied(u *unstructured.Unstructured) {
	applied := map[string]any{}
	if json.Unmarshal([]byte(u.GetAnnotations()[engine.LastApplied]), &applied) == nil {
		older := &unstructured.Unstructured{Object: map[string]any{"data": applied["data"], "stringData": applied["stringData"]}}
		older.SetGroupVersionKind(u.GroupVersionKind())
		m.Learn(older)
	}
}

// learnClear remembers a value as it is, without the line break that files end in, and as it is
// written in JSON, in Go's quotes and in URLs.
func (m *Masker) learnClear(clear string) {
	m.values.add(clear)
	trimmed := strings.TrimSpace(clear)
	m.values.add(trimmed)
	quoted, err := json.Marshal(trimmed)
	if err == nil {
		m.values.add(string(quoted[1 : len(quoted)-1]))
	}
	goQuoted := strconv.Quote(trimmed)
	m.values.add(goQuoted[1 : len(goQuoted)-1])
	m.values.add(url.PathEscape(trimmed))
	m.values.add(url.QueryEscape(trimmed))
}

// Text masks the learned values in a text.
func (m *Masker) Text(s string) string {
	if m == nil || m.values.empty() {
		return s
	}
	return m.values.mask(s, 0)
}

// Name masks learned values in the name of a field: only long ones, because the
// names of fields are words.
func (m *Masker) Name(s string) string {
	if m == nil || len(s) < longName || m.values.empty() {
		return s
	}
	return m.values.mask(s, longName)
}

// Error returns an error whose text is masked when it is asked for. errors.Is and
// errors.As find what it wraps; nothing else does.
func (m *Masker) Error(err error) error {
	if m == nil || err == nil {
		return err
	}
	return &maskedError{err: err, masker: m}
}

type maskedError struct {
	err    error
	masker *Masker
}

func (e *maskedError) Error() string        { return e.masker.Text(e.err.Error()) }
func (e *maskedError) Is(target error) bool { return errors.Is(e.err, target) }
func (e *maskedError) As(target any) bool   { return errors.As(e.err, target) }

// Object masks one object. The result shares what needed no mask; it is the given object
// if nothing did.
func (m *Masker) Object(u *unstructured.Unstructured) *unstructured.Unstructured {
	masked, _ := m.Pair(u, nil)
	return masked
}

// Pair masks two states of an object, either of which may be nil. If two masked values
// differ, so do their masks.
func (m *Masker) Pair(from, to *unstructured.Unstructured) (*unstructured.Unstructured, *unstructured.Unstructured) {
	secret := engine.IsSecret(from) || engine.IsSecret(to)
	if m == nil || m.blind || (!secret && m.values.empty()) {
		return from, to
	}
	a, b := m.root(secret, content(from), content(to))
	return masked(from, a), masked(to, b)
}

// Value masks the values of a field before and after a change; one that was not there is
// nil. The names are the fields that lead to it, up to the first list element.
func (m *Masker) Value(object *unstructured.Unstructured, names []string, from, to any) (any, any) {
	secret := engine.IsSecret(object)
	if m == nil || m.blind || (!secret && m.values.empty()) {
		return from, to
	}
	a, b := m.root(secret, wrap(names, from), wrap(names, to))
	return unwrap(names, a), unwrap(names, b)
}

// Path masks learned values in the names and keys of a path.
func (m *Masker) Path(p fieldpath.Path) fieldpath.Path {
	if m == nil || m.values.empty() {
		return p
	}
	out := make(fieldpath.Path, len(p))
	for i, e := range p {
		switch {
		case e.FieldName != nil:
			e = fieldpath.FieldNameElement(m.Name(*e.FieldName))
		case e.Key != nil:
			key := make(value.FieldList, len(*e.Key))
			for j, f := range *e.Key {
				key[j] = value.Field{Name: f.Name, Value: m.keyValue(f.Value)}
			}
			e = fieldpath.PathElement{Key: &key}
		case e.Value != nil:
			e = fieldpath.ValueElement(m.keyValue(*e.Value))
		}
		out[i] = e
	}
	return out
}

func (m *Masker) keyValue(v value.Value) value.Value {
	if !v.IsString() {
		return v
	}
	return value.NewValueInterface(m.Text(v.AsString()))
}

func content(u *unstructured.Unstructured) any {
	if u == nil {
		return nil
	}
	return u.Object
}

func masked(u *unstructured.Unstructured, v any) *unstructured.Unstructured {
	object, ok := v.(map[string]any)
	if !ok || engine.Identical(u.Object, object) {
		return u
	}
	return &unstructured.Unstructured{Object: object}
}

// wrap nests a value under field names; nil stays nil.
func wrap(names []string, v any) any {
	if v == nil {
		return nil
	}
	for i := len(names) - 1; i >= 0; i-- {
		v = map[string]any{names[i]: v}
	}
	return v
}

func unwrap(names []string, v any) any {
	for range names {
		object, _ := v.(map[string]any)
		v = nil
		for _, only := range object {
			v = only
		}
	}
	return v
}
