package evaluation

import "testing"

func TestDigests(t *testing.T) {
	same := [][2]any{{int64(1), 1.0}, {int64(1000000), 1e6}, {[]any{"a"}, []any{"a"}}, {map[string]any{"a": nil}, map[string]any{"a": nil}}}
	differ := [][2]any{
		{int64(1), "1"},
		{true, "true"},
		{[]any{int64(1), int64(2)}, []any{int64(12)}},
		{[]any{[]any{"a"}, "b"}, []any{"a", []any{"b"}}},
		{[]any{"a", "b"}, []any{"ab"}},
		{map[string]any{"a": nil}, map[string]any{}},
		{map[string]any{}, []any{}},
		{map[string]any{"a": "b"}, []any{"a", "b"}},
		{nil, false},
		{int64(1), 1.5},
	}
	for _, pair := range same {
		if new(digests).of(pair[0]) != new(digests).of(pair[1]) {
			t.Errorf("%#v and %#v are the same, but not their digests", pair[0], pair[1])
		}
	}
	for _, pair := range differ {
		if new(digests).of(pair[0]) == new(digests).of(pair[1]) {
			t.Errorf("%#v and %#v have one digest", pair[0], pair[1])
		}
	}
}

// A list that states share is read for the first one alone.
func TestDigestsReadAListOnce(t *testing.T) {
	var d digests
	list := []any{"a", "b"}
	before := d.of(map[string]any{"list": list})
	list[1] = "c" // as nothing does
	if d.of(map[string]any{"list": list}) != before {
		t.Error("the list was read again")
	}
	if list = append(list, "d"); d.of(map[string]any{"list": list}) == before {
		t.Error("a longer list has the same digest")
	}
}
