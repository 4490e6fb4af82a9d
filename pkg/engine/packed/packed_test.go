package packed

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPack(t *testing.T) {
	var d Dictionary
	long := strings.Repeat("long ", 20)
	for _, value := range []any{
		nil, true, false, "", "text", long, int64(0), int64(-1), int64(math.MaxInt64), int64(math.MinInt64), 0.5, math.Copysign(0, -1), math.MaxFloat64,
		map[string]any{},
		[]any{},
		map[string]any{"a": []any{map[string]any{"a": "text"}, []any{}, nil}, long: long, "": int64(300), "z": map[string]any{"b": false}},
	} {
		text, ok := d.Pack(value)
		if !ok {
			t.Errorf("%v is not packed", value)
			continue
		}
		if diff := cmp.Diff(value, d.Unpack(text)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if rest := behind(text); rest != "" {
			t.Errorf("behind %v is %q", value, rest)
		}
		fields, _ := value.(map[string]any)
		for name, want := range fields {
			if got, ok := d.Field(text, name); !ok || !cmp.Equal(want, got) {
				t.Errorf("field %q is %v, want %v", name, got, want)
			}
		}
	}
	for _, value := range []any{1, json.Number("1"), map[string]any(nil), []any(nil), []string{}, map[string]any{"a": []any{float32(1)}}} {
		if _, ok := d.Pack(value); ok {
			t.Errorf("%#v is packed", value)
		}
	}
}

func TestDictionaryIsBounded(t *testing.T) {
	var d Dictionary
	list := make([]any, 2*maxKnown)
	for i := range list {
		list[i] = strconv.Itoa(i)
	}
	text, _ := d.Pack(list)
	if len(d.texts) != maxKnown {
		t.Errorf("there are %d texts, want %d", len(d.texts), maxKnown)
	}
	if !cmp.Equal(any(list), d.Unpack(text)) {
		t.Error("texts that are not in the dictionary are others when they are unpacked")
	}
}

// An object allocates its maps and lists, and nothing for texts and keys that occur elsewhere.
func TestUnpackAllocates(t *testing.T) {
	var d Dictionary
	text, _ := d.Pack(map[string]any{"kind": "Pod", "spec": map[string]any{"containers": []any{map[string]any{"name": "a", "image": "b"}}}})
	const lists, maps, forEachMap = 1, 3, 3 // the map, its group, and the interface that holds it or less
	if got := testing.AllocsPerRun(100, func() { d.Unpack(text) }); got > lists*2+maps*forEachMap {
		t.Errorf("%v allocations, want no more than %d", got, lists*2+maps*forEachMap)
	}
	if got := testing.AllocsPerRun(100, func() { d.Field(text, "kind") }); got != 0 {
		t.Errorf("%v allocations to look up a field", got)
	}
}

func FuzzPack(f *testing.F) {
	f.Add(`{"apiVersion":"v1","kind":"Pod","spec":{"a":[1,-2.5,true,null,"x",{}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var value any
		if json.Unmarshal([]byte(text), &value) != nil {
			return
		}
		var d Dictionary
		packed, ok := d.Pack(value)
		if !ok {
			t.Fatal("it is not packed")
		}
		if diff := cmp.Diff(value, d.Unpack(packed)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func BenchmarkUnpack(b *testing.B) {
	var d Dictionary
	text, _ := d.Pack(map[string]any{"kind": "Pod", "spec": map[string]any{"containers": []any{map[string]any{"name": "a", "image": "b"}}}})
	b.ReportAllocs()
	for b.Loop() {
		d.Unpack(text)
	}
}
