package dialects_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
)

// limited is a program whose rules change more fields than may be listed.
type limited struct{ engine.Program }

// Evaluate takes a draft with too many changes.
func (l limited) Evaluate(ctx context.Context, t engine.Target, w *engine.World, s engine.Sink) (*unstructured.Unstructured, error) {
	t.Draft.Compare = func(map[string]any, map[string]any) ([]engine.FieldChange, error) {
		return nil, engine.CheckFields(engine.MaxObjectFields + 1)
	}
	return l.Program.Evaluate(ctx, t, w, s)
}

// A rule that changes more than may be listed fails in each language: an API server has no such limit, so that the
// failurePolicy of a policy says nothing about it.
func TestTooManyFieldsFail(t *testing.T) {
	const apply, add = `Object{metadata: Object.metadata{labels: {"a": "1"}}}`, `[JSONPatch{op: "add", path: "/data/new", value: "1"}]`
	for name, policy := range map[string]string{
		"Kyverno":                         clusterPolicy("p", "", `{"patchStrategicMerge": {"metadata": {"labels": {"a": "1"}}}}`),
		"Gatekeeper":                      mutator("p", "Assign", "data.new", `"1"`),
		"MutatingAdmissionPolicy, Ignore": celPolicy("MutatingAdmissionPolicy", "p", `"failurePolicy": "Ignore",`, celMutation(apply)),
		"MutatingAdmissionPolicy, Fail":   celPolicy("MutatingAdmissionPolicy", "p", `"failurePolicy": "Fail",`, celMutation(apply), celMutation(add)),
		"MutatingPolicy, Ignore":          celPolicy("MutatingPolicy", "p", `"failurePolicy": "Ignore",`, celMutation(apply)),
		"MutatingPolicy, Fail":            celPolicy("MutatingPolicy", "p", `"failurePolicy": "Fail",`, celMutation(apply), celMutation(add)),
	} {
		t.Run(name, func(t *testing.T) {
			object := objectOf(t, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}, "data": {"x": "y"}}`)
			before := object.DeepCopy()
			c := evaluatedBy(t, object, []string{policy}, evaluation.Options{}, func(p engine.Program) engine.Program { return limited{p} })
			var limit *engine.LimitError
			if len(c.Steps) != 1 || c.Steps[0].Outcome != engine.Failed || !errors.As(c.Steps[0].Err, &limit) {
				t.Errorf("got %+v, want one step that failed", c.Steps)
			}
			if len(c.Fields) > 0 || !reflect.DeepEqual(c.After.Object, before.Object) {
				t.Errorf("%d fields change", len(c.Fields))
			}
		})
	}
}

// Other limits of this program, and its defects, are the same: only those of a server are for the failurePolicy.
func TestLimitsOfThisProgramFail(t *testing.T) {
	for name, c := range map[string]struct {
		expression string
		server     bool // which has the limit too
		only       string
	}{
		"elements": {expression: `Object{metadata: Object.metadata{labels: {"a": string(variables.c.size())}}}`},
		"steps":    {expression: `Object{metadata: Object.metadata{labels: {"a": string(lists.range(30000).all(n, true))}}}`},
		"bytes":    {expression: `Object{metadata: Object.metadata{labels: {"a": string(lists.range(99999999).size())}}}`},
		"patterns": {expression: `Object{metadata: Object.metadata{labels: {"a": "x".find("x{0,1000}" + object.data.x + "x{0,1000}x{0,1000}x{0,1000}x{0,1000}x{0,1000}x{0,1000}x{0,1000}x{0,1000}x{0,1000}x{0,1000}")}}}`},
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
					change := evaluatedBy(t, object, []string{celPolicy(kind, "p", more, celMutation(c.expression))}, evaluation.Options{}, func(p engine.Program) engine.Program { return p })
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
