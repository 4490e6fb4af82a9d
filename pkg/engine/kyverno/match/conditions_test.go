package match_test

import (
	"errors"
	"testing"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
)

func scope(t testing.TB) *variables.Scope {
	t.Helper()
	s := variables.NewScope(jmespath.New(time.Unix(0, 0), 1, nil))
	s.Set("request", decode(t, `{"operation": "UPDATE", "object": {"spec": {"replicas": 3, "list": ["a", "b"]}}}`))
	return s
}

const (
	yes     = `{"key": "{{ request.operation }}", "operator": "Equals", "value": "UPDATE"}`
	no      = `{"key": "{{ request.operation }}", "operator": "Equals", "value": "CREATE"}`
	broken  = `{"key": "{{ request.missing }}", "operator": "Equals", "value": "x"}`
	guarded = `{"key": "{{ request.missing || '' }}", "operator": "Equals", "value": ""}`
	because = `{"key": "a", "operator": "Equals", "value": "b", "message": "a is not b"}`
	typed   = `{"key": "b", "operator": "AnyIn", "value": "{{ request.object.spec.list }}"}`
)

func TestConditionsMet(t *testing.T) {
	for _, c := range []struct {
		name, raw string
		why       string
	}{
		{"none", `null`, ""},
		{"an empty map", `{}`, ""},
		{"an empty list", `[]`, ""},
		{"a list is all", `[` + yes + `,` + yes + `]`, ""},
		{"a list with a miss", `[` + yes + `,` + no + `]`, `[1]: {{ request.operation }} is "UPDATE", wants Equals "CREATE"`},
		{"all", `{"all": [` + yes + `,` + typed + `]}`, ""},
		{"all stops at the first miss", `{"all": [` + because + `,` + broken + `]}`, `all[0]: a is not b ("a" Equals "b")`},
		{"all of nothing", `{"all": []}`, ""},
		{"any", `{"any": [` + no + `,` + yes + `]}`, ""},
		{"any stops at the first hit", `{"any": [` + yes + `,` + broken + `]}`, ""},
		{"any without a hit", `{"any": [` + no + `,` + because + `]}`, `any[0]: {{ request.operation }} is "UPDATE", wants Equals "CREATE"; any[1]: a is not b ("a" Equals "b")`},
		{"any of nothing", `{"any": []}`, "any: no condition"},
		{"any that is null", `{"any": null}`, ""},
		{"any and all", `{"any": [` + yes + `], "all": [` + no + `]}`, `all[0]: {{ request.operation }} is "UPDATE", wants Equals "CREATE"`},
		{"any misses, all holds", `{"any": [` + because + `], "all": [` + yes + `]}`, `any[0]: a is not b ("a" Equals "b")`},
		{"a default for what is missing", `[` + guarded + `]`, ""},
		{"no key", `[{"operator": "Equals", "value": "x"}]`, `[0]: null Equals "x"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			parsed, err := match.ParseConditions(decode(t, c.raw))
			if err != nil {
				t.Fatal(err)
			}
			var unmet *match.UnmetError
			if err := parsed.Check(scope(t)); c.why != "" && (!errors.As(err, &unmet) || err.Error() != c.why) || c.why == "" && err != nil {
				t.Errorf("got %v, want %q", err, c.why)
			}
		})
	}
}

func TestConditionsMissingVariable(t *testing.T) {
	for _, raw := range []string{`[` + broken + `]`, `{"any": [` + broken + `,` + yes + `]}`, `{"any": [` + no + `], "all": [` + broken + `]}`} {
		parsed, err := match.ParseConditions(decode(t, raw))
		if err != nil {
			t.Fatal(err)
		}
		var notFound *jmespath.NotFoundError
		if err = parsed.Check(scope(t)); !errors.As(err, &notFound) {
			t.Errorf("%s: got %v", raw, err)
		}
	}
}

func TestParseConditionsErrors(t *testing.T) {
	for raw, want := range map[string]string{
		`"x"`:             "",
		`{"some": []}`:    "some",
		`{"any": {}}`:     "any",
		`{"all": ["x"]}`:  "all[0]",
		`[{"key": "x"}]`:  "[0]",
		`[{"keys": "x"}]`: "[0].keys",
		`{"any": [` + yes + `, {"key": "x", "operator": "Lt", "value": 1}]}`:          "any[1].operator",
		`{"all": [{"key": "{{ a. }}", "operator": "Equals", "value": 1}]}`:            "all[0].key",
		`{"all": [{"key": "a", "operator": "Equals", "value": ["{{ unknown() }}"]}]}`: "all[0].value",
	} {
		_, err := match.ParseConditions(decode(t, raw))
		var failed *engine.CompileError
		if !errors.As(err, &failed) || failed.Field != want {
			t.Errorf("%s: got %v, want it at %s", raw, err, want)
		}
	}
}
