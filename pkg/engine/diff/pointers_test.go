package diff_test

import (
	"fmt"
	"math"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// Each of many elements is found where it is, whatever was looked for before.
func TestPointersOfManyPaths(t *testing.T) {
	set := func(v any) fieldpath.PathElement { return fieldpath.ValueElement(value.NewValueInterface(v)) }
	var ports []any
	for i := range 1000 {
		ports = append(ports, map[string]any{"port": int64(i)}, map[string]any{"port": int64(i), "protocol": "UDP"})
	}
	p := diff.PointersIn(map[string]any{
		"ports":  append(ports, map[string]any{"protocol": "SCTP"}, "no object"),
		"others": []any{map[string]any{"port": int64(1), "protocol": "UDP"}},
		"set":    []any{"a", int64(1), 2.0, true, nil, math.Copysign(0, -1), "twice", "twice"},
	})
	for range 2 {
		for i := range 1000 {
			path := fieldpath.MakePathOrDie("ports", key("port", int64(i), "protocol", "UDP"), "name")
			if got, ok := p.Of(path); ok {
				t.Errorf("port %d: one element has the key and another one lacks a field of it: got %s", i, got)
			}
		}
		for _, c := range []struct {
			why  string
			path fieldpath.Path
			want string // "" for none
		}{
			{"a field that is absent", fieldpath.MakePathOrDie("others", key("port", int64(1), "protocol", "UDP"), "name"), "/others/0/name"},
			{"a number that is written otherwise", fieldpath.MakePathOrDie("others", key("port", 1.0)), "/others/0"},
			{"an element that lacks the first field of its key", fieldpath.MakePathOrDie("ports", key("port", int64(5000), "protocol", "SCTP")), "/ports/2000"},
			{"a key that several have", fieldpath.MakePathOrDie("ports", key("port", int64(7))), ""},
			{"a text", fieldpath.MakePathOrDie("set", set("a")), "/set/0"},
			{"a number", fieldpath.MakePathOrDie("set", set(1.0)), "/set/1"},
			{"a fraction", fieldpath.MakePathOrDie("set", set(int64(2))), "/set/2"},
			{"a boolean", fieldpath.MakePathOrDie("set", set(true)), "/set/3"},
			{"null", fieldpath.MakePathOrDie("set", set(nil)), "/set/4"},
			{"zero", fieldpath.MakePathOrDie("set", set(int64(0))), "/set/5"},
			{"a value that stands twice", fieldpath.MakePathOrDie("set", set("twice")), ""},
			{"a value that is not there", fieldpath.MakePathOrDie("set", set("b")), ""},
		} {
			if got, ok := p.Of(c.path); got != c.want || ok != (c.want != "") {
				t.Errorf("%s: got %q, %v; want %q", c.why, got, ok, c.want)
			}
		}
	}
}

func BenchmarkPointersOfAChangedList(b *testing.B) {
	var list []any
	var paths []fieldpath.Path
	for i := range 10_000 {
		name := fmt.Sprint("n", i)
		list = append(list, map[string]any{"name": name})
		paths = append(paths, fieldpath.MakePathOrDie("env", key("name", name), "value"))
	}
	for b.Loop() {
		p := diff.PointersIn(map[string]any{"env": list})
		for _, path := range paths {
			if _, ok := p.Of(path); !ok {
				b.Fatal(path)
			}
		}
	}
}
