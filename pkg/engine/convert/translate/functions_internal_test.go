package translate

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
)

// Every function is translated or refused with a reason, and testdata calls each of those that are translated.
func TestEveryFunctionIsKnown(t *testing.T) {
	queries, err := os.ReadFile("testdata/queries.txtar")
	if err != nil {
		t.Fatal(err)
	}
	all := jmespath.Functions()
	for _, name := range all {
		f, ok := functions[name]
		switch {
		case !ok:
			t.Errorf("%s is neither translated nor refused", name)
		case (f.translate == nil) == (f.refused == ""):
			t.Errorf("%s has to be either translated or refused", name)
		case f.translate != nil && !strings.Contains(string(queries), name+"("):
			t.Errorf("%s is not called in testdata", name)
		}
	}
	for name := range functions {
		if !slices.Contains(all, name) {
			t.Errorf("there is no function %s", name)
		}
	}
}
