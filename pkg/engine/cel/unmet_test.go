package cel_test

import (
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
)

func TestUnmet(t *testing.T) {
	s := newScope(t, cel.Options{Authorizer: true, RequestObjects: true})
	if err := s.Variable("name", "object.metadata.name"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ says, expression, want string }{
		{"both sides of a comparison", `object.spec.containers[0].name == object.metadata.name`, `object.spec.containers[0].name is "app", object.metadata.name is "web"`},
		{"what is written there is not repeated", `object.metadata.name == "db"`, `object.metadata.name is "web"`},
		{"the size of a list", `size(object.spec.containers) > 3`, `size(object.spec.containers) is 1`},
		{"a list by its size", `"x" in object.spec.containers`, `object.spec.containers is a list of 1`},
		{"a map by its size", `"x" in object.metadata.labels`, `object.metadata.labels is a map of 1`},
		{"a field that is not there", `has(object.spec.replicas)`, `object.spec.replicas is not there`},
		{"a field that is there and should not be", `!has(object.metadata.labels)`, `object.metadata.labels is a map of 1`},
		{"the conjunct that is false", `has(object.metadata.labels) && object.metadata.name == "db"`, `object.metadata.name is "web"`},
		{"a conjunct of a conjunct", `true && (has(object.spec.x) && true)`, `object.spec.x is not there`},
		{"all of what could make it true", `has(object.spec.x) || object.metadata.name == "db"`, `object.spec.x is not there, object.metadata.name is "web"`},
		{"what a method is called on", `object.metadata.name.startsWith("db")`, `object.metadata.name is "web"`},
		{"what should not hold", `!object.metadata.name.startsWith("web")`, `object.metadata.name is "web"`},
		{"what a macro goes over", `object.spec.containers.exists(c, c.image.endsWith(":2"))`, `object.spec.containers is a list of 1`},
		{"a conjunct with a macro", `object.spec.containers.all(c, has(c.image)) && object.metadata.name == "db"`, `object.metadata.name is "web"`},
		{"a variable", `variables.name == "db"`, `variables.name is "web"`},
		{"nothing beside a part that speaks for itself", `false`, ``},
		{"nothing that would have to be asked", `authorizer.group("").resource("pods").check("get").allowed()`, ``},
	} {
		t.Run(c.says, func(t *testing.T) {
			in := input(t)
			in.Explain = true
			if got := unmet(t, s, in, c.expression); got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
		})
	}
}

// unmet is what is found of a condition that is false.
func unmet(t *testing.T, s *cel.Scope, in cel.Input, expression string) string {
	t.Helper()
	x, err := s.Condition(expression)
	if err != nil {
		t.Fatal(err)
	}
	e := s.Evaluate(t.Context(), in, cel.MatchBudget)
	if _, asks := strings.CutPrefix(expression, "authorizer"); !asks {
		if holds, err := e.Condition(x); err != nil || holds {
			t.Fatalf("%v, %v", holds, err)
		}
	}
	text, found := strings.CutPrefix(e.Unmet(x).Error(), `match condition "" is false: `+expression)
	if !found {
		t.Errorf("got %s", text)
	}
	return strings.TrimSuffix(strings.TrimPrefix(text, " ("), ")")
}
