package snapshot

import (
	"encoding/json"
	"math"
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
		[]any{map[string]any{"a": true}, map[string]any{"a": true}, []any{"a"}, []any{"a"}},
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
		if object, isMap := d.Unpack(text).(map[string]any); isMap {
			object["own"] = true
			if diff := cmp.Diff(value, d.Unpack(text)); diff != "" {
				t.Errorf("a whole value is shared:\n%s", diff)
			}
		}
	}
	for _, value := range []any{1, json.Number("1"), map[string]any(nil), []any(nil), []string{}, map[string]any{"a": []any{float32(1)}}} {
		if _, ok := d.Pack(value); ok {
			t.Errorf("%#v is packed", value)
		}
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
