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
	s := variables.NewScope(jmespath.New(time.Unix(0, 0), 1), engine.DefaultLimits())
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
		met       bool
		why       string
	}{
		{"none", `null`, true, ""},
		{"an empty map", `{}`, true, ""},
		{"an empty list", `[]`, true, ""},
		{"a list is all", `[` + yes + `,` + yes + `]`, true, ""},
		{"a list with a miss", `[` + yes + `,` + no + `]`, false, `[1]: {{ request.operation }} is "UPDATE", wants Equals "CREATE"`},
		{"all", `{"all": [` + yes + `,` + typed + `]}`, true, ""},
		{"all stops at the first miss", `{"all": [` + because + `,` + broken + `]}`, false, `all[0]: a is not b ("a" Equals "b")`},
		{"all of nothing", `{"all": []}`, true, ""},
		{"any", `{"any": [` + no + `,` + yes + `]}`, true, ""},
		{"any stops at the first hit", `{"any": [` + yes + `,` + broken + `]}`, true, ""},
		{"any without a hit", `{"any": [` + no + `,` + because + `]}`, false, `any[0]: {{ request.operation }} is "UPDATE", wants Equals "CREATE"; any[1]: a is not b ("a" Equals "b")`},
		{"any of nothing", `{"any": []}`, false, "any: no condition"},
		{"any that is null", `{"any": null}`, true, ""},
		{"any and all", `{"any": [` + yes + `], "all": [` + no + `]}`, false, `all[0]: {{ request.operation }} is "UPDATE", wants Equals "CREATE"`},
		{"any misses, all holds", `{"any": [` + because + `], "all": [` + yes + `]}`, false, `any[0]: a is not b ("a" Equals "b")`},
		{"a default for what is missing", `[` + guarded + `]`, true, ""},
		{"no key", `[{"operator": "Equals", "value": "x"}]`, false, `[0]: null Equals "x"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			parsed, err := match.ParseConditions(decode(t, c.raw))
			if err != nil {
				t.Fatal(err)
			}
			verdict, err := parsed.Met(scope(t))
			if err != nil {
				t.Fatal(err)
			}
			if verdict.Met != c.met || verdict.Why() != c.why {
				t.Errorf("got %v because %q, want %v because %q", verdict.Met, verdict.Why(), c.met, c.why)
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
		verdict, err := parsed.Met(scope(t))
		var notFound *jmespath.NotFoundError
		if !errors.As(err, &notFound) {
			t.Errorf("%s: got %v, %v", raw, verdict, err)
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
		var parse *match.ParseError
		if !errors.As(err, &parse) || parse.Path != want {
			t.Errorf("%s: got %v, want it at %s", raw, err, want)
		}
	}
}
