package objectdiff_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/objectdiff"
)

// No key of an object is so long, or so odd, that it cannot be shown.
func TestKeysThatYAMLReadsBadly(t *testing.T) {
	for _, key := range []string{strings.Repeat("k", 1025), strings.Repeat("k", 100_000), strings.Repeat("\u202e", 2000), strings.Repeat("a: b\n", 500), "? ", "<<", "\x7f"} {
		text, err := objectdiff.MarshalYAML(map[string]any{key: int64(1), "b": 1.5, "c": uint64(1 << 63)})
		if err != nil {
			t.Errorf("%.20q: %v", key, err)
		}
		var back map[string]any
		if err := yaml.Unmarshal(text, &back); len(key) < 1024 && key != "<<" && (err != nil || back[key] != 1.0) {
			t.Errorf("%.20q is %v after %v", key, back[key], err)
		}
	}
}
