package diff_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// A diff of two lists shows which element comes. The field that is checked, and written, has to be that one.
func TestPlacesOfElementsAreShown(t *testing.T) {
	for _, c := range []struct {
		before, after, place, kind string
		more                       string // of the field
		want                       bool
	}{
		{`["a"]`, `["a", "b"]`, "1", "added", "", true},
		{`["b"]`, `["a", "b"]`, "0", "added", "", true},
		{`["b"]`, `["a", "b"]`, "1", "added", "", false},
		{`["a", "b"]`, `["b"]`, "0", "removed", "", true},
		{`["a", "b"]`, `["a"]`, "0", "removed", "", false},
		{`["a", "b"]`, `["a", "c"]`, "1", "replaced", "", true},
		{`["a", "b"]`, `["c", "b"]`, "1", "replaced", "", false},
		{`["***"]`, `["***", "***"]`, "0", "added", `, "withheld": true`, true}, // which of them it is cannot be seen
	} {
		var p diff.Partial
		text := fmt.Sprintf(`{"before": {"l": %s}, "after": {"l": %s}, "fields": [{"path": "l[%[3]s]", "elements": ["f:l", "i:%[3]s"], "kind": %q%s}]}`, c.before, c.after, c.place, c.kind, c.more)
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			t.Fatal(err)
		}
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		if err := p.ValidateShown(); (err == nil) != c.want {
			t.Errorf("%s: %v", text, err)
		}
	}
}
