package jmespath_test

import (
	"fmt"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
)

// What names an object, and its kind and type, count for nothing; whatever else is read, or computed with,
// counts.
func TestReads(t *testing.T) {
	reads := map[string]jmespath.Reading{
		"s.metadata.name": jmespath.ReadsNothing, "s.kind": jmespath.ReadsNothing, "other.data.k": jmespath.ReadsNothing, "'s.data'": jmespath.ReadsNothing,
		"s.metadata.name || other": jmespath.ReadsNothing, "s.items[0].metadata.uid": jmespath.ReadsNothing,
		"s.metadata.labels.app": jmespath.ReadsMetadata, "s.metadata.annotations.note": jmespath.ReadsMetadata,
		"s.data.k": jmespath.ReadsMore, "s": jmespath.ReadsMore, "s.*": jmespath.ReadsMore, "@": jmespath.ReadsMore, "[s][0]": jmespath.ReadsMore,
		"{a: s}.a.metadata.name": jmespath.ReadsMore, "s || other": jmespath.ReadsMore, "other && s.data": jmespath.ReadsMore, "!s.data.k": jmespath.ReadsMore,
		"s.data.k == 'x'": jmespath.ReadsMore, "s.items[?data.k == 'x'].metadata.name": jmespath.ReadsMore, "s.metadata": jmespath.ReadsMore,
		"s.metadata.annotations": jmespath.ReadsMore, `s.metadata.annotations."kubectl.kubernetes.io/last-applied-configuration"`: jmespath.ReadsMore,
	}
	for _, function := range jmespath.Functions() {
		for _, arguments := range []string{"s", "s.data.k, 'x'", "'x', s.data.k", "&@, s.items", "'x', 'x', s.data.k"} {
			reads[fmt.Sprintf("%s(%s)", function, arguments)] = jmespath.ReadsMore
		}
	}
	for expression, want := range reads {
		compiled, err := jmespath.Compile(expression)
		if err != nil {
			t.Fatal(err)
		}
		if got := compiled.Reads("s"); got != want {
			t.Errorf("%s: got %d, want %d", expression, got, want)
		}
	}
}
