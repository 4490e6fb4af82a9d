package structured

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An object that is written piece by piece reads as the library writes it at once.
func TestWriterOfMembers(t *testing.T) {
	texts := "  first\n\n  second: # no comment\n"
	values := []any{map[string]any{"b": texts, "a": []any{"x", []any{1, texts}, map[string]any{}}}, "- no list", texts}
	for _, asYAML := range []bool{false, true} {
		var got bytes.Buffer
		w := newWriter(&got, asYAML)
		for range 2 {
			err := w.item("list", []member{
				{"made", elements(func(yield func(any) bool) {
					for _, v := range values {
						if !yield(v) {
							return
						}
					}
				})},
				{"none", elements(func(func(any) bool) {})},
				{"values", values},
				{"text", texts},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := w.endList("list"); err != nil {
			t.Fatal(err)
		}
		w.end()
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		element := struct {
			Made   []any  `json:"made"`
			None   []any  `json:"none"`
			Values []any  `json:"values"`
			Text   string `json:"text"`
		}{values, []any{}, values, texts}
		want, err := MarshalText(map[string]any{"list": []any{element, element}}, asYAML)
		if err != nil {
			t.Fatal(err)
		}
		if !asYAML {
			want = want[:len(want)-1]
		}
		if diff := cmp.Diff(want, got.String()); diff != "" {
			t.Errorf("YAML is %v (-want +got):\n%s", asYAML, diff)
		}
	}
}
