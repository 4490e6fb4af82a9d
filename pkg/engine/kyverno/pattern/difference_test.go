package pattern_test

import (
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
)

// difference is a case of testdata/differences.txtar: a pattern, a value that does
// not match it, and where and why not.
type difference struct {
	Pattern, Value any
	Want           string
}

func TestDifference(t *testing.T) {
	conformance.EachCase(t, "testdata/differences.txtar", func(t *testing.T, c *difference) {
		var why pattern.Difference
		if pattern.Match(nil, c.Pattern, c.Value, &why) {
			t.Fatal("they match")
		}
		if got := why.Below("spec").Text(engine.BriefValue); got != c.Want {
			t.Errorf("\n got %s\nwant %s", got, c.Want)
		}
	})
}
