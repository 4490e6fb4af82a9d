package cel_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
)

// Each of these would run for ages, or fill the memory, were it not stopped.
func TestEvaluationIsBounded(t *testing.T) {
	nested := "true"
	for i := range 6 {
		nested = fmt.Sprintf("range.all(x%d, %s)", i, nested)
	}
	doubled := func(first, join string) []string {
		variables := []string{first}
		for i := range 60 {
			variables = append(variables, fmt.Sprintf(join, i))
		}
		return variables
	}
	for name, c := range map[string]struct {
		variables []string // v0, v1, ...
		mutation  string
		want      string
	}{
		"one expression": {
			variables: []string{"[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]"},
			mutation:  "Object{metadata: Object.metadata{labels: {'a': string(" + strings.ReplaceAll(nested, "range", "variables.v0") + ")}}}",
			want:      "1000000 units of CEL cost for one expression",
		},
		"lists joined with themselves": {
			variables: doubled("[1]", "variables.v%[1]d + variables.v%[1]d"),
			mutation:  "Object{spec: Object.spec{args: variables.v60}}",
			want:      "100000 elements in one value",
		},
		"lists of themselves": {
			variables: doubled("[dyn(1)]", "[dyn(variables.v%[1]d), dyn(variables.v%[1]d)]"),
			mutation:  "Object{spec: Object.spec{args: variables.v60}}",
			want:      "100000 elements in one value",
		},
		"texts joined with themselves": {
			variables: doubled("'0123456789'", "variables.v%[1]d + variables.v%[1]d"),
			mutation:  "Object{metadata: Object.metadata{labels: {'a': variables.v60}}}",
			want:      "units of CEL cost",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScope(t, cel.Options{})
			for i, v := range c.variables {
				if err := s.Variable(fmt.Sprintf("v%d", i), v); err != nil {
					t.Fatal(err)
				}
			}
			m, err := s.ApplyConfiguration(c.mutation, cel.RefuseAtomic)
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			_, err = s.Evaluate(t.Context(), input(t), cel.MutationBudget()).Mutate(m, builtin)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			if elapsed := time.Since(start); elapsed > 30*time.Second {
				t.Errorf("it took %s", elapsed)
			}
		})
	}
}

// A text that can be no quantity, however long it is, is one to a server neither.
func TestIsQuantityOfOtherTexts(t *testing.T) {
	for _, text := range []string{strings.Repeat("words ", 100), "image@sha256:0123456789", strings.Repeat("9", 100) + "x"} {
		x, err := newScope(t, cel.Options{}).Condition("!isQuantity('" + text + "')")
		if err != nil {
			t.Fatal(err)
		}
		s := newScope(t, cel.Options{})
		if holds, err := s.Evaluate(t.Context(), cel.Input{}, cel.MatchBudget()).Condition(x); err != nil || !holds {
			t.Errorf("%.20s is a quantity: %v", text, err)
		}
	}
}

// What exceeds a limit is the expression's own failure, which names it, whatever the
// expression makes of it.
func TestLimitsOfFunctions(t *testing.T) {
	for expression, want := range map[string]string{
		"quantity('1e999999999').isGreaterThan(quantity('1'))":                    "100 as the exponent of a quantity",
		"isQuantity('" + strings.Repeat("9", 101) + "')":                          "100 characters in a quantity",
		"'x'.matches(variables.pattern)":                                          "10000 instructions of a regular expression",
		"'x'.matches(variables.pattern) || true":                                  "10000 instructions of a regular expression",
		"'%.999999999f'.format([1.0]) == ''":                                      "bytes built by one rule on one object",
		"lists.range(99999999).size() > 0":                                        "bytes built by one rule on one object",
		"variables.text.replace('', variables.text) == ''":                        "bytes built by one rule on one object",
		"variables.text.find('(a*)*(a*)*(a*)*(a*)*b' + variables.text) == ''":     "bytes in a regular expression",
		"lists.range(30000).all(n, true)":                                         "steps of one rule on one object",
		"lists.range(20000).all(n, [1, 2, 3].all(m, true))":                       "steps of one rule on one object",
		"lists.range(5000).all(n, variables.text.find('[ab]*a[ab]{200}c') == '')": "steps of one rule on one object",
	} {
		s := newScope(t, cel.Options{})
		for _, v := range [][2]string{
			{"pattern", "'x{0,1000}x{0,1000}x{0,1000}x{0,1000}x{0,1000}' + 'x{0,1000}x{0,1000}x{0,1000}x{0,1000}x{0,1000}x{0,1000}'"},
			{"text", "lists.range(20000).map(n, 'a').join()"},
		} {
			if err := s.Variable(v[0], v[1]); err != nil {
				t.Fatal(err)
			}
		}
		x, err := s.Condition(expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		_, err = s.Evaluate(t.Context(), input(t), cel.MutationBudget()).Condition(x)
		var limit *cel.LimitError
		if !errors.As(err, &limit) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want the limit of %s", expression, err, want)
		}
	}
}

// One rule has one budget, for all its conditions and mutations.
func TestEvaluationsShareTheBudgetOfARule(t *testing.T) {
	s := newScope(t, cel.Options{})
	x, err := s.Condition("lists.range(500000).size() > 0")
	if err != nil {
		t.Fatal(err)
	}
	in := input(t)
	in.Budget = engine.NewBudget(t.Context())
	times := 0
	for err == nil && times < 100 {
		_, err = s.Evaluate(t.Context(), in, cel.MutationBudget()).Condition(x)
		times++
	}
	var limit *cel.LimitError
	if !errors.As(err, &limit) || times < 2 {
		t.Errorf("%v, the %dth time", err, times)
	}
}

func TestLimitsOfExpressions(t *testing.T) {
	deep := func(open, inner, end string) string {
		return strings.Repeat(open, 2000) + inner + strings.Repeat(end, 2000)
	}
	for expression, want := range map[string]string{
		deep("(", "1", ")"):                                      "is nested more than 250 deep",
		deep("[", "1", "]"):                                      "is nested more than 250 deep",
		deep("{1: ", "1", "}"):                                   "is nested more than 250 deep",
		deep("size(", "''", ")"):                                 "is nested more than 250 deep",
		deep("true ? 1 : ", "1", ""):                             "is nested more than 250 deep",
		deep("", "object", ".a"):                                 "is nested more than 250 deep",
		deep("1 + ", "1", ""):                                    "is nested more than 250 deep",
		deep("(", "", ""):                                        "is nested more than 250 deep",
		"'" + strings.Repeat("a", 100_001) + "'":                 "is longer than 100000 characters",
		strings.Repeat("1 1 ", 2000):                             "cannot be read",
		"'x'.matches('" + strings.Repeat("x{0,1000}", 20) + "')": "10000 instructions of a regular expression",
		"'x'.find('" + strings.Repeat("x", 10_001) + "') == ''":  "10000 bytes in a regular expression",
	} {
		_, err := newScope(t, cel.Options{}).Compile(expression)
		var refused *cel.CompileError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), want) || len(err.Error()) > 2000 {
			t.Errorf("%.40q: %v, want %s", expression, err, want)
		}
	}
}

// Objects of variables double as lists do, where a language allows them there.
func TestObjectsAreBounded(t *testing.T) {
	s := newScope(t, cel.Options{PatchTypes: true})
	if err := s.Variable("v0", "Object{a: 1}"); err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		if err := s.Variable(fmt.Sprintf("v%d", i+1), fmt.Sprintf("Object{a: variables.v%[1]d, b: variables.v%[1]d}", i)); err != nil {
			t.Fatal(err)
		}
	}
	x, err := s.Condition("variables.v60 == variables.v60")
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Evaluate(t.Context(), input(t), cel.MatchBudget()).Condition(x)
	if err == nil || !strings.Contains(err.Error(), "100000 elements") {
		t.Errorf("got %v", err)
	}
}

func TestEvaluationSharesBudget(t *testing.T) {
	s := newScope(t, cel.Options{})
	x, err := s.Condition("[1, 2, 3, 4, 5, 6, 7, 8].all(a, a > 0)")
	if err != nil {
		t.Fatal(err)
	}
	e := s.Evaluate(t.Context(), input(t), cel.Budget{Cost: 60, Of: "this test"})
	if _, err := e.Condition(x); err != nil {
		t.Fatal(err)
	}
	_, err = e.Condition(x)
	var limit *cel.LimitError
	if !errors.As(err, &limit) || !limit.Server || !strings.HasSuffix(err.Error(), "limit of 60 units of CEL cost for this test") {
		t.Errorf("got %v", err)
	}
}

func TestEvaluationCancelled(t *testing.T) {
	s := newScope(t, cel.Options{})
	x, err := s.Condition("true")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Evaluate(ctx, input(t), cel.MatchBudget()).Condition(x); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestEvaluationErrors(t *testing.T) {
	s := newScope(t, cel.Options{})
	if err := s.Variable("colour", "object.spec.colour"); err != nil {
		t.Fatal(err)
	}
	x, err := s.Condition("variables.colour\n   == 'red'")
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Evaluate(t.Context(), input(t), cel.MatchBudget()).Condition(x)
	want := `expression "variables.colour == 'red'" resulted in error: variable "colour": expression "object.spec.colour" resulted in error: no such key: colour`
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

// Patches that do not apply take linear time, too: all of the object is read once.
func TestFailingPatchesReadTheObjectOnce(t *testing.T) {
	s, m := patch(t, `JSONPatch{op: "test", path: "/metadata/name", value: "other"}`)
	in := input(t)
	in.Object["data"] = strings.Repeat("x", 1<<20)
	in.Budget, in.Checked = engine.NewBudget(t.Context()), &cel.Checked{}
	for i := range 200 {
		if _, err := s.Evaluate(t.Context(), in, cel.MutationBudget()).Mutate(m, builtin); err != nil {
			t.Fatalf("patch %d: %v", i, err)
		}
	}
}

// Patches of what is in an element of a list read and write that alone, also where apply configurations come between them.
func TestPatchesOfElementsAreLinear(t *testing.T) {
	s, appends := patch(t, `JSONPatch{op: "add", path: "/spec/containers/0/env/-", value: {"name": "E", "value": "v"}}`)
	labels, err := s.ApplyConfiguration(`Object{metadata: Object.metadata{labels: {'l': 'v'}}}`, cel.RefuseAtomic)
	if err != nil {
		t.Fatal(err)
	}
	allocated := func(n int) uint64 {
		in := input(t)
		in.Budget, in.Checked, in.Draft = engine.NewBudget(t.Context()), &cel.Checked{}, &engine.Draft{}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range n {
			r, err := s.Evaluate(t.Context(), in, cel.MutationBudget()).Mutate([]*cel.Mutation{appends, labels}[i%2], builtin)
			if err != nil {
				t.Fatal(err)
			}
			in.Object = r.Object
			in.Draft.Commit()
		}
		runtime.ReadMemStats(&after)
		containers := in.Object["spec"].(map[string]any)["containers"].([]any)
		if env := containers[0].(map[string]any)["env"].([]any); len(env) != 1+n/2 {
			t.Fatalf("%d variables after %d patches", len(env), n)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	allocated(10) // what is made once
	if once, twice := allocated(400), allocated(800); float64(twice) > 2.2*float64(once) {
		t.Errorf("400 patches allocate %d bytes, 800 %d", once, twice)
	}
}
