package variables_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
)

func newScope() *variables.Scope {
	return variables.NewScope(jmespath.New(time.Unix(0, 0), 1), engine.DefaultLimits())
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

func define(s *variables.Scope, name string, load variables.Load) { s.Define(name, load) }

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
	define(s, "cm", func(*variables.Scope) (any, error) {
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

func TestScopeBrokenEntry(t *testing.T) {
	s := newScope()
	define(s, "broken", func(*variables.Scope) (any, error) { return nil, errors.New("no such ConfigMap") })
	define(s, "unused", query("missing.key"))
	s.Set("request", "r")
	expect(t, s, "request", "r")
	for _, expr := range []string{"broken.data", "broken || 'default'", "broken[]", "to_string(broken)", "broken == `1`"} {
		_, err := evaluate(s, expr)
		if err == nil || !strings.HasPrefix(err.Error(), "failed to load context entry broken: ") {
			t.Errorf("%s: got %v, want an EntryError", expr, err)
		}
	}
	if _, err := evaluate(s, "unused || 'default'"); err == nil {
		t.Error("a missing key in an entry passes for one in the query")
	}
}

func TestScopeAbsentEntry(t *testing.T) {
	s := newScope()
	define(s, "images", func(*variables.Scope) (any, error) { return nil, &jmespath.NotFoundError{Key: "images"} })
	expect(t, s, "images.containers || 'none'", "none")
	expect(t, s, "lookup(@, 'images')", nil)
	var notFound *jmespath.NotFoundError
	if _, err := evaluate(s, "images.containers"); !errors.As(err, &notFound) {
		t.Errorf("got %v, want a missing key", err)
	}
}

func TestScopeEntrySeesEarlierOnes(t *testing.T) {
	s := newScope()
	define(s, "early", query("late"))
	define(s, "late", query("request"))
	s.Set("request", "r")
	expect(t, s, "late", "r")
	var notFound *jmespath.NotFoundError
	if _, err := evaluate(s, "early"); !errors.As(err, &notFound) {
		t.Errorf("got %v, want a missing key", err)
	}
}

// deferred/foreach of the conformance tests: an entry of the rule may use values
// that only the iterations have.
func TestScopeEntrySeesValuesOfChild(t *testing.T) {
	s := newScope()
	define(s, "image", query("element.image"))
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
	define(parent, "shared", func(*variables.Scope) (any, error) { loads++; return int64(1), nil })
	parent.Set("x", "parent")
	expect(t, parent, "shared", int64(1))
	child := parent.Child()
	expect(t, child, "shared", int64(1))
	if loads != 1 {
		t.Errorf("loaded %d times; a child uses what its parent has", loads)
	}
	child.Set("x", "child")
	child.Set("y", true)
	define(child, "z", query("x"))
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

func TestScopeCycle(t *testing.T) {
	s := newScope()
	define(s, "own", query("own"))
	if _, err := evaluate(s, "own"); err == nil {
		t.Error("an entry that needs itself loads")
	}
	define(s, "outer", func(*variables.Scope) (any, error) { return evaluate(s, "outer") })
	_, err := evaluate(s, "outer")
	if err == nil || !strings.Contains(err.Error(), "needs itself") {
		t.Errorf("got %v, want a CycleError", err)
	}
}

func TestScopeSizeLimit(t *testing.T) {
	s := newScope()
	megabyte := func(*variables.Scope) (any, error) { return strings.Repeat("x", 1<<20), nil }
	for _, name := range []string{"a", "b", "c"} {
		define(s, name, megabyte)
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

func TestScopeWholeContext(t *testing.T) {
	s := newScope()
	s.Set("a", int64(1))
	define(s, "cm", query("'loaded'"))
	define(s, "broken", query("missing"))
	expect(t, s, "@.a", int64(1))
	expect(t, s, "lookup(@, 'cm')", "loaded")
	expect(t, s, "keys(@)", []any{"a"})
	if _, err := evaluate(s, "lookup(@, 'broken')"); err == nil {
		t.Error("a broken entry is used without an error")
	}
}
