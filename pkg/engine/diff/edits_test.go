package diff

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEdits(t *testing.T) {
	type object = map[string]any
	for _, c := range []struct {
		name          string
		before, after object
		want          string
	}{
		{"a null is added", object{}, object{"a": nil}, `[{"op":"add","path":"/a","value":null}]`},
		{"keys are escaped", object{}, object{"a/b~c": "x"}, `[{"op":"add","path":"/a~1b~0c","value":"x"}]`},
		{"a map becomes a string", object{"a": object{}}, object{"a": "x"}, `[{"op":"replace","path":"/a","value":"x"}]`},
		{
			"an element is put first",
			object{"l": []any{"b", "c"}},
			object{"l": []any{"a", "b", "c"}},
			`[{"op":"add","path":"/l/0","value":"a"}]`,
		},
		{
			"several go from the end backwards",
			object{"l": []any{"a", "b", "c"}},
			object{"l": []any{"x"}},
			`[{"op":"replace","path":"/l/0","value":"x"},{"op":"remove","path":"/l/2"},{"op":"remove","path":"/l/1"}]`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := json.Marshal(Edits(c.before, c.after))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, string(got)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
