package jmespath_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	gojmespath "github.com/kyverno/go-jmespath"
)

// The library evaluates the expressions that it parses, too. Where all numbers
// are floats, which is all that it knows, both must answer the same; so must
// they on whether a key is unknown.
func TestSearchAgreesWithTheLibrary(t *testing.T) {
	object, _ := cases(t)
	var data any
	if err := json.Unmarshal([]byte(object), &data); err != nil {
		t.Fatal(err)
	}
	for _, expr := range []string{
		"a", "a.b", "a.missing", "a.missing.x", "a.nothing", "a.nothing.x", `"with-dash".k`, "missing", "missing || 'x'",
		"l[0]", "l[-1].n", "l[9]", "l[0].missing", "l[0:2].n", "l[::-1].v", "l[*].n", "l[*].missing", "l[].v", "nested[]", "nested[][]",
		"length(labels.*)", "sort(labels.*)", "missing[]", "missing[*].x", "missing[?x]", "missing.*",
		"l[?v > `1`].n", "l[?v >= `1` && n != 'two'].n", "l[?!(v == `1`)].n", "l[?contains(n, 't')].v", "l[?missing]",
		"a.{x: b, y: half}", "l[*].{name: n}", "l[*].[n, v]", "[a.b, a.half]", "a | b", "a.missing | @", "l | [0].n",
		"a.b && a.half", "a.nothing && a.b", "a.nothing || a.b", "!a.nothing", "!a.b", "a.b == `1`", "a.text == 'x'", "a == a",
		"`[1, \"two\", null]`", "'raw'", "@.a.b", "length(l)", "length(a.text)", "max(l[*].v)", "min_by(l, &v).n", "max_by(l, &v).n",
		"sort_by(l, &n)[*].v", "map(&v, l)", "merge(a, {b: `2`})", "not_null(a.nothing, a.b)", "reverse(l[*].v)", "avg(l[*].v)",
		"keys({z: `1`})", "values({z: `1`})", "to_array(a.b)", "to_string(l[0])", "to_number('7')", "type(a)", "join('-', l[*].n)",
		"starts_with(a.text, 'x')", "ends_with(a.text, 'y')", "floor(a.half)", "ceil(a.half)", "abs(`-3`)", "contains(l[*].v, `2`)",
	} {
		library, err := gojmespath.Compile(expr)
		if err != nil {
			t.Fatalf("%s: %v", expr, err)
		}
		want, wantErr := library.Search(data)
		got, gotErr := search(t, expr, data)
		if (wantErr == nil) != (gotErr == nil) {
			t.Errorf("%s: error %v, the library's %v", expr, gotErr, wantErr)
			continue
		}
		if d := cmp.Diff(asJSON(t, want), asJSON(t, got)); wantErr == nil && d != "" {
			t.Errorf("%s (-library +ours)\n%s", expr, d)
		}
	}
}

// asJSON is a value with all its numbers as floats.
func asJSON(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
