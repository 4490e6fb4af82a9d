package match_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
)

// pin are Secrets that know one short value.
type pin struct{}

func (pin) Any() bool            { return true }
func (pin) Known(value any) bool { return strings.Contains(fmt.Sprint(value), "4711") }
func (pin) Derive(any, ...any)   {}

func TestConditionsHideSecrets(t *testing.T) {
	s := variables.NewScope(jmespath.New(time.Unix(0, 0), 1).WithSecrets(pin{}), engine.DefaultLimits())
	s.Set("pin", "4711")
	s.Set("name", "web")
	for raw, want := range map[string]string{
		`[{"key": "{{ pin }}", "operator": "Equals", "value": "x"}]`:           `[0]: {{ pin }} does not meet Equals (values of a Secret are not shown)`,
		`[{"key": "{{ name }}", "operator": "Equals", "value": "x"}]`:          `[0]: {{ name }} is "web", wants Equals "x"`,
		`[{"key": "{{ name }}", "operator": "Equals", "value": "4711"}]`:       `[0]: {{ name }} is "web", wants Equals "4711"`,
		`[{"key": "{{ name }}", "operator": "AnyIn", "value": ["{{ pin }}"]}]`: `[0]: {{ name }} does not meet AnyIn (values of a Secret are not shown)`,
	} {
		parsed, err := match.ParseConditions(decode(t, raw))
		if err != nil {
			t.Fatal(err)
		}
		verdict, err := parsed.Met(s)
		if err != nil || verdict.Why() != want {
			t.Errorf("%s:\ngot  %s, %v\nwant %s", raw, verdict.Why(), err, want)
		}
	}
}
