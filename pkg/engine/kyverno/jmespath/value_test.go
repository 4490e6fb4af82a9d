package jmespath

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type (
	object = map[string]any
	list   = []any
)

func TestEqual(t *testing.T) {
	for _, c := range []struct {
		a, b any
		want bool
	}{
		{nil, nil, true},
		{nil, false, false},
		{true, true, true},
		{true, "true", false},
		{"a", "a", true},
		{"1", int64(1), false},
		{int64(1), 1.0, true},
		{1.5, 1.5, true},
		{int64(9007199254740993), int64(9007199254740992), false},
		{int64(0), nil, false},
		{list{int64(1), "a"}, list{1.0, "a"}, true},
		{list{"a"}, list{"a", "b"}, false},
		{list{"a", "b"}, list{"b", "a"}, false},
		{list{}, object{}, false},
		{object{"a": list{int64(1)}}, object{"a": list{1.0}}, true},
		{object{"a": nil}, object{"b": nil}, false},
		{object{"a": nil}, object{"a": nil, "b": nil}, false},
	} {
		if got := Equal(nil, c.a, c.b); got != c.want {
			t.Errorf("Equal(%#v, %#v) is %t", c.a, c.b, got)
		}
		if got := Equal(nil, c.b, c.a); got != c.want {
			t.Errorf("Equal(%#v, %#v) is %t", c.b, c.a, got)
		}
	}
}

func TestCanonicalNumbers(t *testing.T) {
	for f, want := range map[float64]any{
		3: int64(3), -2: int64(-2), 0.5: 0.5, 1 << 53: int64(1 << 53), 1 << 54: float64(1 << 54), math.Inf(1): nil, math.NaN(): nil,
	} {
		if diff := cmp.Diff(want, canonical(f)); diff != "" {
			t.Errorf("canonical(%v) -want +got:\n%s", f, diff)
		}
	}
	got, err := decode(`{"a": [1, 2.5, {"b": 3.0}], "c": null}`)
	want := object{"a": list{int64(1), 2.5, object{"b": int64(3)}}, "c": nil}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestParseQuantityRefusesHugeExponents(t *testing.T) {
	for text, want := range map[string]bool{
		"10Mi": true, "1e3": true, "5": true, "1e999999999": false, "1E-99999999": false, strings.Repeat("1", 65): false, "x": false, "": false,
	} {
		if _, err := ParseQuantity(text); (err == nil) != want {
			t.Errorf("ParseQuantity(%q): %v", text, err)
		}
	}
}
