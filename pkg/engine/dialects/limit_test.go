package dialects_test

import (
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Limits of this program, and its defects, make a rule fail: only those of a server are for the
// failurePolicy.
func TestLimitsOfThisProgramFail(t *testing.T) {
	for name, c := range map[string]struct {
		expression string
		server     bool // which has the limit too
		only       string
	}{
		"elements": {expression: `Object{metadata: Object.metadata{labels: {"a": string(variables.c.size())}}}`},
		"patches":  {expression: `[JSONPatch{op: "test", path: "/data/x", value: lists.range(2000).map(n, lists.range(60))}]`},
		"texts":    {expression: `Object{metadata: Object.metadata{labels: {"a": random("(a{900})+(b{900})+(c{900})+(d{900})+")}}}`, only: "MutatingPolicy"},
		"cost":     {expression: `Object{metadata: Object.metadata{labels: {"a": string([1, 2, 3, 4].all(a, variables.a.all(b, variables.a.all(c, variables.a.all(d, variables.a.all(e, variables.a.all(f, f > 0)))))))}}}`, server: true},
	} {
		for _, kind := range []string{"MutatingAdmissionPolicy", "MutatingPolicy"} {
			if c.only != "" && c.only != kind {
				continue
			}
			for _, failurePolicy := range []string{"Ignore", "Fail"} {
				t.Run(name+"/"+kind+"/"+failurePolicy, func(t *testing.T) {
					more := `"failurePolicy": "` + failurePolicy + `", "variables": [
						{"name": "a", "expression": "[1,2,3,4,5,6,7,8,9,10]"},
						{"name": "b", "expression": "variables.a.map(x, variables.a).map(x, x.map(y, variables.a))"},
						{"name": "c", "expression": "variables.b.map(x, variables.b).map(x, x.map(y, variables.b))"}],`
					object := objectOf(t, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}, "data": {"x": "y"}}`)
					change := evaluated(t, object, []string{celPolicy(kind, "p", more, celMutation(c.expression))})
					want := engine.Failed
					if c.server {
						want = map[string]engine.Outcome{"Ignore": engine.Skipped, "Fail": engine.Denied}[failurePolicy]
					}
					if len(change.Steps) != 1 || change.Steps[0].Outcome != want || engine.OfThisProgram(change.Steps[0].Err) == c.server {
						t.Errorf("got %v: %v, want %v", change.Steps[0].Outcome, change.Steps[0].Err, want)
					}
				})
			}
		}
	}
}
