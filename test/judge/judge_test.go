package main

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func read1(t *testing.T, s string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(s), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCompare(t *testing.T) {
	t.Parallel()
	const in = `{"a": 1, "l": [{"x": 1}, {"x": 2}]}`
	for _, test := range []struct {
		one, other        string
		failed, failedToo bool
		what              string
		paths             []string
	}{
		{one: in, other: `{"a": 1.0, "l": [{"x": 1}, {"x": 2}]}`},
		{one: in, other: `{"a": 1, "l": [{"x": 1}, {"x": 2}], "e": {}}`, what: "empty", paths: []string{".e"}},
		{one: in, other: `{"a": 1, "l": [{"x": 2}, {"x": 1}]}`, what: "order", paths: []string{".l"}},
		{one: in, other: `{"a": 2, "l": [{"x": 1}, {"x": 2}]}`, what: "more", paths: []string{".a"}},
		{one: `{"a": 2, "l": [{"x": 1}, {"x": 2}]}`, other: in, what: "less", paths: []string{".a"}},
		{one: `{"a": 2, "l": [{"x": 1}]}`, other: `{"a": 3, "l": [{"x": 1}]}`, what: "other", paths: []string{".a"}},
		{one: in, other: in, failedToo: true, what: "denied"},
		{one: in, other: in, failed: true},
		{one: in, other: `{"a": 2}`, failed: true, what: "more than an error", paths: []string{".a", ".l"}},
	} {
		one, other := answer{object: read1(t, test.one)}, answer{object: read1(t, test.other)}
		if test.failed {
			one.errors = []string{"it fails"}
		}
		if test.failedToo {
			other.errors = []string{"it fails"}
		}
		if what, paths := compare(read1(t, in), one, other); what != test.what || !slices.Equal(paths, test.paths) {
			t.Errorf("%s, %s: %q at %q; want %q at %q", test.one, test.other, what, paths, test.what, test.paths)
		}
	}
}

// All objects have their own name, meet their policy's literals, and are the same for the same seed.
func TestObjects(t *testing.T) {
	t.Parallel()
	cases, err := read(nil, "testdata")
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) < 200 {
		t.Fatalf("%d policies", len(cases))
	}
	j := judge{n: 400, seed: 1, source: "../.."}
	for _, want := range []struct {
		policy string
		kind   schema.GroupVersionKind
		met    func(object map[string]any) bool
	}{
		{"hard/condition-1", schema.GroupVersionKind{Group: "acme.io", Version: "v1", Kind: "Gauge"}, func(o map[string]any) bool {
			return object(o["spec"])["name"] == "a"
		}},
		{"hard/mutation-2", schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, func(o map[string]any) bool {
			return slices.ContainsFunc(list(object(o["spec"])["containers"]), func(c any) bool { return object(c)["image"] == "x1:latest" })
		}},
	} {
		c := cases[slices.IndexFunc(cases, func(c testcase) bool { return c.name == want.policy })]
		s, err := newSchemas(j.source, c.crds)
		if err != nil {
			t.Fatal(err)
		}
		if kinds := kindsOf(s, c.policy); !slices.Contains(kinds, want.kind) {
			t.Errorf("%s: kinds %v", want.policy, kinds)
		}
		objects, err := j.objects(c, []schema.GroupVersionKind{want.kind}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(objects) != 200 || !slices.ContainsFunc(objects, want.met) {
			t.Errorf("%s: none of %d objects meets it", want.policy, len(objects))
		}
		if again, err := j.objects(c, []schema.GroupVersionKind{want.kind}, 0); err != nil || !reflect.DeepEqual(objects, again) {
			t.Errorf("%s: the same seed makes others", want.policy)
		}
	}
}
