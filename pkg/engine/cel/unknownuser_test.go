package cel_test

import (
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
)

// TestUnknownUser also keeps an answer from coming of
// what only looks like one, such as "no" to an equality.
func TestUnknownUser(t *testing.T) {
	env, err := celgo.NewEnv(celgo.Variable("request", celgo.DynType), celgo.OptionalTypes())
	if err != nil {
		t.Fatal(err)
	}
	request := map[string]any{"request": map[string]any{"userInfo": cel.NewUnknownUser(nil)}}
	for expression, unknown := range map[string]bool{
		`has(request.userInfo)`:                                    false,
		`has(request.userInfo.username)`:                           false,
		`has(request.userInfo.groups)`:                             true,
		`request.userInfo.username == "alice"`:                     true,
		`request.userInfo.username in ["alice"]`:                   true,
		`request.userInfo.?username.orValue("nobody") == "nobody"`: true,
		`request.userInfo.groups.exists(g, g == "dev")`:            true,
		`true || request.userInfo.username == "alice"`:             false,
	} {
		ast, issues := env.Compile(expression)
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		v, _, err := program.Eval(request)
		switch {
		case unknown && (err == nil || !strings.Contains(err.Error(), "the user is not known")):
			t.Errorf("%s: got %v (%v)", expression, v, err)
		case !unknown && (err != nil || v.Value() != true):
			t.Errorf("%s: got %v (%v)", expression, v, err)
		}
	}
}
