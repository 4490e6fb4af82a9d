package variables_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
)

func newScope() *variables.Scope {
	return variables.NewScope(jmespath.New(time.Unix(0, 0), 1, nil))
}

// evaluate compiles an expression, and evaluates it on a scope.
func evaluate(s *variables.Scope, expr string) (any, error) {
	compiled, err := jmespath.Compile(expr)
	if err != nil {
		return nil, err
	}
	return s.Query(compiled)
}

// query is an entry that is the result of an expression, as a `variable` entry
// of a policy is.
func query(expr string) func(*variables.Scope) (any, error) {
	return func(s *variables.Scope) (any, error) { return evaluate(s, expr) }
}

func expect(t *testing.T, s *variables.Scope, expr string, want any) {
	t.Helper()
	got, err := evaluate(s, expr)
	if err != nil {
		t.Errorf("%s: %v", expr, err)
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: -want +got:\n%s", expr, diff)
	}
}

func TestScopeLoadsEntryOnce(t *testing.T) {
	s := newScope()
	loads := 0
	s.Define("cm", func(*variables.Scope) (any, error) {
		loads++
		return map[string]any{"data": map[string]any{"k": "v"}}, nil
	})
	s.Set("request", map[string]any{"cm": "a field of that name"})
	expect(t, s, "request.cm", "a field of that name")
	expect(t, s, "request.cm || cm.data", "a field of that name")
	if loads != 0 {
		t.Errorf("loaded %d times without use", loads)
	}
	expect(t, s, "cm.data.k", "v")
	expect(t, s, "cm.data.k", "v")
	if loads != 1 {
		t.Errorf("loaded %d times", loads)
	}
}

func TestScopeEntries(t *testing.T) {
	s := newScope()
	s.Define("broken", func(*variables.Scope) (any, error) { return nil, errors.New("no such ConfigMap") })
	s.Define("unresolved", query("missing.key"))
	s.Define("images", func(*variables.Scope) (any, error) { return nil, &jmespath.NotFoundError{Key: "images"} })
	s.Define("early", query("late"))
	s.Define("late", query("request"))
	s.Define("own", query("own"))
	s.Set("request", "r")
	for expr, want := range map[string]any{
		"request": "r", "late": "r", "@.late": "r", "lookup(@, 'late')": "r", "keys(@)": []any{"request"},
		"images.containers || 'none'": "none", "lookup(@, 'images')": nil,
	} {
		expect(t, s, expr, want)
	}
	for _, expr := range []string{"broken.data", "broken || 'default'", "broken[]", "to_string(broken)", "broken == `1`", "lookup(@, 'broken')"} {
		_, err := evaluate(s, expr)
		if err == nil || !strings.HasPrefix(err.Error(), "failed to load context entry broken: ") {
			t.Errorf("%s: got %v, want an error of the entry", expr, err)
		}
	}
	for expr, want := range map[string]string{
		"unresolved || 'a missing key of the entry is none of the query'": `context entry unresolved: Unknown key "missing"`,
		"images.containers": `Unknown key "images"`, "early": `Unknown key "late"`, "own": `Unknown key "own"`,
	} {
		if _, err := evaluate(s, expr); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", expr, err, want)
		}
	}
}

// deferred/foreach of the conformance tests: an entry of the rule may use values
// that only the iterations have.
func TestScopeEntrySeesValuesOfChild(t *testing.T) {
	s := newScope()
	s.Define("image", query("element.image"))
	for _, want := range []string{"nginx", "redis"} {
		child := s.Child()
		child.Set("element", map[string]any{"image": want})
		expect(t, child, "image", want)
	}
	if _, err := evaluate(s, "image"); err == nil {
		t.Error("the load of a child is visible in its parent")
	}
}

func TestScopeChild(t *testing.T) {
	parent := newScope()
	loads := 0
	parent.Define("shared", func(*variables.Scope) (any, error) { loads++; return int64(1), nil })
	parent.Set("x", "parent")
	expect(t, parent, "shared", int64(1))
	child := parent.Child()
	expect(t, child, "shared", int64(1))
	if loads != 1 {
		t.Errorf("loaded %d times; a child uses what its parent has", loads)
	}
	child.Set("x", "child")
	child.Set("y", true)
	child.Define("z", query("x"))
	expect(t, child, "[x, z]", []any{"child", "child"})
	expect(t, parent, "x", "parent")
	for _, name := range []string{"y", "z"} {
		if _, err := evaluate(parent, name); err == nil {
			t.Errorf("%s leaked", name)
		}
	}
	parent.Set("later", true)
	if _, err := evaluate(child, "later"); err == nil {
		t.Error("a child sees what its parent got later")
	}
}

func TestScopeSizeLimit(t *testing.T) {
	s := newScope()
	megabyte := func(*variables.Scope) (any, error) { return strings.Repeat("x", 1<<20), nil }
	for _, name := range []string{"a", "b", "c"} {
		s.Define(name, megabyte)
	}
	expect(t, s, "length(a)", int64(1<<20))
	child := s.Child()
	if _, err := evaluate(child, "length(b)"); err == nil {
		t.Error("a and b together are beyond the limit")
	}
	_, err := evaluate(s, "c")
	if err == nil || !strings.Contains(err.Error(), "(limit ContextSize)") {
		t.Errorf("got %v, want a SizeError", err)
	}
}
