package kyverno

import (
	"strings"
	"testing"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
)

// pin are Secrets that know one short value.
type pin struct{}

func (pin) Any() bool            { return true }
func (pin) Known(value any) bool { return value == "4711" }
func (pin) Derive(any, ...any)   {}

func TestPatchConditionHidesSecrets(t *testing.T) {
	mutate := map[string]any{"patchStrategicMerge": map[string]any{"data": map[string]any{"(a)": "x", "b": "c"}}}
	for value, want := range map[string]string{
		"4711": `condition on data.a does not hold: it does not match "x"`,
		"4712": `condition on data.a does not hold: it is "4712" and does not match "x"`,
	} {
		s := variables.NewScope(jmespath.New(time.Unix(0, 0), 1).WithSecrets(pin{}), engine.DefaultLimits())
		object := map[string]any{"kind": "ConfigMap", "data": map[string]any{"a": value}}
		_, err := decoded(t, mutate).apply(s, patchSubject{Object: object, Schema: patchSchema})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
