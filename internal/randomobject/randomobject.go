// Package randomobject makes random objects and random changes of them, for tests
// that a property holds whatever the object.
package randomobject

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// Maker makes objects and changes; the same seed makes the same.
type Maker struct{ *rand.Rand }

// New returns the Maker of a seed.
func New(seed uint64) Maker { return Maker{rand.New(rand.NewPCG(seed, seed))} }

// Start is the Maker of a seed and an object of it, with how a server compares the
// object's states: a Deployment for half of the seeds, and for the others an object
// of a kind that no schema is known of.
func Start(t testing.TB, seed uint64) (m Maker, object map[string]any, typ diff.Type) {
	t.Helper()
	m = New(seed)
	if seed%2 != 0 {
		return m, m.Object(), diff.Type{}
	}
	object = m.Deployment()
	typed, err := applyconfigurations.NewTypeConverter(scheme.Scheme).ObjectToTyped(&unstructured.Unstructured{Object: object})
	if err != nil {
		t.Fatal(err)
	}
	return m, object, diff.Type{Schema: typed.Schema(), Ref: typed.TypeRef(), EmptyIsAbsent: true}
}

// names include what paths have to escape.
var names = []string{"a", "b", "c", "app.kubernetes.io/name", "x~y", "~1", "0", "a b", `"q"`, "ä/=,[]", "name"} //nolint:gochecknoglobals // an immutable table

// Object makes an object of a kind that no schema is known of.
func (m Maker) Object() map[string]any {
	return map[string]any{
		"apiVersion": "example.org/v1", "kind": "Thing",
		"metadata": map[string]any{"name": "t", "namespace": "n", "labels": m.texts(), "annotations": m.texts()},
		"spec":     m.fields(3),
	}
}

// Deployment makes an object whose lists have keys other than name, sets and
// lists that are replaced whole.
func (m Maker) Deployment() map[string]any {
	metadata := map[string]any{"name": "t", "namespace": "n", "labels": m.texts()}
	if m.IntN(2) == 0 {
		metadata["finalizers"] = m.distinct(func(i int) any { return fmt.Sprintf("example.org/f%d", i) })
	}
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
		"spec": map[string]any{
			"replicas": int64(m.IntN(3)),
			"template": map[string]any{
				"metadata": map[string]any{"labels": m.texts()},
				"spec":     map[string]any{"containers": m.distinct(m.container)},
			},
		},
	}
}

func (m Maker) container(i int) any {
	c := map[string]any{"name": fmt.Sprintf("c%d", i), "image": m.text()}
	if m.IntN(2) == 0 {
		c["env"] = m.distinct(func(i int) any { return map[string]any{"name": fmt.Sprintf("E%d", i), "value": m.text()} })
	}
	if m.IntN(2) == 0 {
		c["ports"] = m.distinct(func(i int) any {
			return map[string]any{"containerPort": int64(80 + i/2), "protocol": []any{"TCP", "UDP"}[i%2], "name": m.text()}
		})
	}
	if m.IntN(2) == 0 {
		c["args"] = m.list(m.scalarText)
	}
	return c
}

// distinct is a list of some of the things that a function makes of different
// numbers, in any order.
func (m Maker) distinct(of func(int) any) []any {
	out := []any{}
	for _, i := range m.Perm(6)[:m.IntN(5)] {
		out = append(out, of(i))
	}
	return out
}

func (m Maker) list(of func() any) []any {
	out := []any{}
	for range m.IntN(5) {
		out = append(out, of())
	}
	return out
}

func (m Maker) text() string    { return names[m.IntN(len(names))] }
func (m Maker) scalarText() any { return m.text() }

func (m Maker) texts() map[string]any {
	out := map[string]any{}
	for range m.IntN(4) {
		out[m.text()] = m.text()
	}
	return out
}

func (m Maker) fields(depth int) map[string]any {
	out := map[string]any{}
	for range m.IntN(5) {
		out[m.text()] = m.value(depth)
	}
	return out
}

func (m Maker) value(depth int) any {
	if depth == 0 {
		return m.scalar()
	}
	switch m.IntN(6) {
	case 0:
		return m.fields(depth - 1)
	case 1:
		return m.list(m.scalar)
	case 2:
		return m.list(func() any { return m.value(depth - 1) })
	case 3, 4:
		return m.distinct(func(i int) any {
			element := m.fields(depth - 1)
			element["name"] = fmt.Sprintf("n%d", i)
			return element
		})
	}
	return m.scalar()
}

func (m Maker) scalar() any {
	switch m.IntN(4) {
	case 0:
		return int64(m.IntN(5))
	case 1:
		return m.IntN(2) == 0
	case 2:
		return float64(m.IntN(5)) + 0.5
	}
	return m.text()
}

// Change makes another state of an object: some of its fields and list elements
// are set, removed, added or moved. What identifies it stays.
func (m Maker) Change(object map[string]any) map[string]any {
	out := runtime.DeepCopyJSON(object)
	for range 1 + m.IntN(4) {
		for _, part := range []string{"metadata", "spec"} {
			if below, ok := out[part].(map[string]any); ok && m.IntN(2) == 0 {
				out[part] = m.changedFields(below, part == "spec" && out["kind"] == "Thing")
			}
		}
	}
	return out
}

// changedFields changes one field of a map, or something below it. A free map may
// get fields of any name and type.
func (m Maker) changedFields(in map[string]any, free bool) map[string]any {
	keys := slices.Sorted(maps.Keys(in))
	if len(keys) == 0 || (free && m.IntN(4) == 0) {
		if free {
			in[m.text()] = m.value(2)
		}
		return in
	}
	key := keys[m.IntN(len(keys))]
	switch old := in[key].(type) {
	case map[string]any:
		switch {
		case free && m.IntN(6) == 0:
			delete(in, key)
		case isTexts(old):
			in[key] = m.changedTexts(old)
		default:
			in[key] = m.changedFields(old, free)
		}
	case []any:
		in[key] = m.changedList(old, free)
	case string, int64, bool, float64:
		in[key] = m.changedScalar(key, old, free)
	}
	return in
}

func (m Maker) changedScalar(key string, old any, free bool) any {
	switch key {
	case "name", "namespace", "containerPort", "protocol":
		return old
	}
	if free {
		return m.scalar()
	}
	if n, ok := old.(int64); ok {
		return n + 1
	}
	return m.text()
}

func isTexts(in map[string]any) bool {
	for _, v := range in {
		if _, ok := v.(string); !ok {
			return false
		}
	}
	_, named := in["name"]
	return !named
}

func (m Maker) changedTexts(in map[string]any) map[string]any {
	if keys := slices.Sorted(maps.Keys(in)); len(keys) > 0 && m.IntN(2) == 0 {
		delete(in, keys[m.IntN(len(keys))])
		return in
	}
	if key := m.text(); key != "name" {
		in[key] = m.text()
	}
	return in
}

func (m Maker) changedList(in []any, free bool) []any {
	if len(in) == 0 {
		return in
	}
	i := m.IntN(len(in))
	switch m.IntN(4) {
	case 0:
		return slices.Delete(in, i, i+1)
	case 1:
		element := in[i]
		in = slices.Delete(in, i, i+1)
		return slices.Insert(in, m.IntN(len(in)+1), element)
	case 2:
		if fields, ok := in[i].(map[string]any); ok {
			in[i] = m.changedFields(fields, free)
			return in
		}
	}
	return m.withAnother(in, i)
}

// withAnother adds an element that is like one that is there, under another name.
func (m Maker) withAnother(in []any, like int) []any {
	element := runtime.DeepCopyJSONValue(in[like])
	switch e := element.(type) {
	case map[string]any:
		if _, ok := e["name"].(string); ok {
			e["name"] = fmt.Sprintf("new%d", m.IntN(1000))
		}
		if port, ok := e["containerPort"].(int64); ok {
			e["containerPort"] = port + 100 + int64(m.IntN(1000))
		}
	case string:
		element = fmt.Sprintf("%s%d", e, m.IntN(1000))
	}
	return slices.Insert(in, m.IntN(len(in)+1), element)
}
