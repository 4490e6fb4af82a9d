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
