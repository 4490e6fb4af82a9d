package pattern_test

import (
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/internal/cases"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
)

// difference is a case of testdata/differences.txtar: a pattern, a value that does
// not match it, and where and why not.
type difference struct {
	Pattern, Value any
	Want           string
}

func TestExplain(t *testing.T) {
	cases.Each(t, "testdata/differences.txtar", func(t *testing.T, c *difference) {
		if pattern.Match(c.Pattern, c.Value) {
			t.Fatal("they match")
		}
		if got := pattern.Explain(c.Pattern, c.Value).Below("spec").Text(engine.BriefValue); got != c.Want {
			t.Errorf("\n got %s\nwant %s", got, c.Want)
		}
	})
}
