package cel_test

import (
	"testing"

	"github.com/google/cel-go/common/types"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
)

// However variables are asked for, they are those of the policy, in its order; one that is not asked for is not evaluated.
func TestVariablesAsAMap(t *testing.T) {
	for expression, want := range map[string]string{
		`variables.a`:                                     "1",
		`variables.namespace`:                             "2",
		`dyn(variables)["a"]`:                             "1",
		`dyn(variables)["namesp" + "ace"]`:                "2",
		`dyn(variables)["__namespace__"]`:                 "2",
		`string(has(variables.a))`:                        "true",
		`string("a" in dyn(variables))`:                   "",
		`string("b" in dyn(variables))`:                   "",
		`dyn(variables)["b"]`:                             "",
		`dyn(variables)[1]`:                               "",
		`dyn(variables)["fails"]`:                         "",
		`string(variables == variables)`:                  "true",
		`string(dyn(variables) == dyn(object))`:           "",
		`string(dyn(variables).exists(v, v == "2"))`:      "true",
		`dyn(variables).map(v, v).join()`:                 "",
		`dyn(variables).exists(v, v == "3") ? "x" : "y"`:  "",
		`string(type(dyn(variables)) == type(variables))`: "true",
		`string(size(dyn(variables)))`:                    "",
	} {
		s := newScope(t, cel.Options{})
		for _, v := range [][2]string{{"a", "'1'"}, {"namespace", "'2'"}, {"fails", "string(1 / (1 - 1))"}} {
			if err := s.Variable(v[0], v[1]); err != nil {
				t.Fatal(err)
			}
		}
		x, err := s.Compile(expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		got, err := s.Evaluate(t.Context(), input(t), cel.MutationBudget()).Value(x)
		if text, _ := got.(types.String); string(text) != want || (want == "") != (err != nil) {
			t.Errorf("%s = %v, %v; want %q", expression, got, err, want)
		}
	}
}
