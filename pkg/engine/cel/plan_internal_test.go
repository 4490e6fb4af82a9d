package cel

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"
	exprpb "google.golang.org/genproto/googleapis/api/expr/v1alpha1"
	"google.golang.org/protobuf/proto"
)

// Of an expression that was not evaluated three times, no program is kept; nor of more than maxPlans.
func TestProgramsAreKeptOfWhatIsEvaluated(t *testing.T) {
	e, err := NewEnvironment(Options{})
	if err != nil {
		t.Fatal(err)
	}
	var all []*Expression
	for i := range maxPlans + 100 {
		x, err := e.NewScope().Condition(fmt.Sprintf("object.metadata.name == 'web-%d'", i))
		if err != nil {
			t.Fatal(err)
		}
		if len(x.plan.checked) > 500 {
			t.Fatalf("an expression of %d bytes is kept in %d", len(x.text), len(x.plan.checked))
		}
		all = append(all, x)
	}
	in := Input{Object: map[string]any{"metadata": map[string]any{"name": fmt.Sprintf("web-%d", maxPlans+50)}}}
	for _, want := range []int{0, 0, 0, maxPlans, maxPlans} {
		if kept := keptOf(all); kept != want {
			t.Errorf("%d programs are kept, want %d", kept, want)
		}
		for i, x := range all {
			if v, err := e.NewScope().Evaluate(t.Context(), in, MatchBudget()).Value(x); err != nil || v != types.Bool(i == maxPlans+50) {
				t.Fatalf("%s: %v, %v", x.text, v, err)
			}
		}
	}
}

func keptOf(all []*Expression) (kept int) {
	for _, x := range all {
		if x.plan.kept.Load() != nil {
			kept++
		}
	}
	return kept
}

// Policies whose variables have the same names and types share a checker, which knows no other ones.
func TestCheckersAreShared(t *testing.T) {
	e, err := NewEnvironment(Options{})
	if err != nil {
		t.Fatal(err)
	}
	scope := func(expressions ...string) *Scope {
		s := e.NewScope()
		for i, x := range expressions {
			if err := s.Variable(string(rune('a'+i)), x); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	for name, c := range map[string]struct {
		scope *Scope
		knows bool // whether it takes variables.a + "x", and variables.b
		b     bool
	}{
		"one text":              {scope("'x'"), true, false},
		"a text and a number":   {scope("'y'", "1"), true, true},
		"one text of an object": {scope("string(object.metadata.name)"), true, false},
		"a number":              {scope("2"), false, false},
	} {
		if _, err := c.scope.Condition("variables.a + 'x' == 'x'"); (err == nil) != c.knows {
			t.Errorf("%s: variables.a: %v", name, err)
		}
		if _, err := c.scope.Condition("variables.b == 1"); (err == nil) != c.b {
			t.Errorf("%s: variables.b: %v", name, err)
		}
	}
	if made := len(e.plain.checkers); made != 3 {
		t.Errorf("%d checkers are made, want 3", made)
	}
	for i := range 3 * maxCheckers {
		s := e.NewScope()
		s.declare(fmt.Sprintf("v%d", i), types.StringType, nil)
		if _, err := s.Condition(fmt.Sprintf("variables.v%d == ''", i)); err != nil {
			t.Error(err)
		}
		if made := len(e.plain.checkers); made > maxCheckers {
			t.Fatalf("%d checkers are kept", made)
		}
	}
}

// What is put around the steps of a program changes nothing of its cost in CEL's units.
func TestCostIsThatOfTheLibrary(t *testing.T) {
	e, err := NewEnvironment(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, expression := range []string{
		"[dyn(object.text.replace('a', 'b')), object.text, dyn('a' + 'b')]",
		"[dyn(object.text.replace('a', 'b'))]",
		"[object.text]",
		"['a' + 'b']",
		"['a' + 'b' + 'c']",
		"[dyn('a')]",
		"{'a': dyn(object.text.split(',')), 'b': dyn([object.text + object.text]), 'c': dyn(object.list)}",
		"object.list.all(x, x in [1, 2, 3, 4])",
		"object.text.split(',').map(x, x + object.text).filter(x, x != '').join('')",
		"[object.list, dyn([1])].exists(x, x.exists(y, y == 4))",
		"object.list.map(x, dyn(x) + 1).map(x, x * 2)",
		"[object.list[size(object.list) - 1], object['te' + 'xt']]",
		"{'a': dyn([object.list][size(object.list) - 4][size('a')]), 'b': dyn({'a': 'b'}[object.text.replace(',b,c', '')])}",
		"[object[?'te' + 'xt'].hasValue(), [1][?size(object.list)].hasValue()]",
		"object['li' + 'st'].all(x, object['li' + 'st'].exists(y, y == x))",
		"[object.?no.or(object.?text).value(), object.?no.orValue('a'), object.?text.orValue('a')]",
		"[has(object.no), object.text.matches('^a'), object.text.find('b') == 'b', object.text.contains('c') ? true : false]",
		"[int('4'), object.list[0] + int('4'), sets.contains(object.list, [1]) ? 1 : 2, [3, 1].sort()[0]]",
		"[1 in [1, 2], object.list[0] in [1, 2], object.text in {'a,b,c': 1}, object.list.exists_one(x, x == 1)]",
	} {
		x, err := e.NewScope().Condition("dyn(" + expression + ") != null")
		if err != nil {
			t.Fatal(err)
		}
		var checked exprpb.CheckedExpr
		if err := proto.Unmarshal(x.plan.checked, &checked); err != nil {
			t.Fatal(err)
		}
		a, err := cel.CheckedExprToAstWithSource(&checked, nil)
		if err != nil {
			t.Fatal(err)
		}
		bare, err := x.plan.planner.in.Program(a)
		if err != nil {
			t.Fatal(err)
		}
		in := map[string]any{"object": map[string]any{"text": "a,b,c", "list": []any{1, 2, 3, 4}}}
		ours, err := x.plan.make()
		if err != nil {
			t.Fatal(err)
		}
		got, cost := run(t, ours, in)
		want, costs := run(t, bare, in)
		if got.Equal(want) != types.True || cost != costs {
			t.Errorf("%s is %v for %d, and by itself %v for %d", expression, got, cost, want, costs)
		}
	}
}

func run(t *testing.T, p program, in map[string]any) (v ref.Val, cost uint64) {
	t.Helper()
	v, details, err := p.ContextEval(t.Context(), in)
	if err != nil || details == nil || details.ActualCost() == nil {
		t.Fatalf("%v, %v", details, err)
	}
	return v, *details.ActualCost()
}

// A planner makes the steps that the library makes, but for what it leaves to the library.
func TestStepsAreThoseOfTheLibrary(t *testing.T) {
	e, err := NewEnvironment(Options{Authorizer: true, PatchTypes: true, Extensions: []cel.EnvOption{ext.Math(), ext.Encoders(), ext.Bindings()}})
	if err != nil {
		t.Fatal(err)
	}
	p, made := e.patches.planner, ast.NewExprFactory()
	for name, f := range e.Functions() {
		for _, overload := range f.OverloadDecls() {
			var args []ast.Expr
			for i := range overload.ArgTypes() {
				args = append(args, made.NewIdent(int64(i+2), fmt.Sprintf("argument%d", i)))
			}
			call := ast.NewCheckedAST(ast.NewAST(made.NewCall(1, name, args...), nil), nil, map[int64]*ast.ReferenceInfo{1: ast.NewFunctionReference(overload.ID())})
			var steps [2]string
			note := func(at int) interpreter.InterpretableDecoratorV2 {
				return func(step interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
					if step.ID() == 1 {
						steps[at] = fmt.Sprintf("%T", step)
					}
					return step, nil
				}
			}
			_, libraryErr := p.in.PlanProgram(call, cel.CustomDecoratorV2(note(0)))
			_, err := p.steps(call, note(1))
			switch {
			case name == "or", name == "orValue", name == "cel.@block": // which the parser does not accept
			case (err != nil) != (libraryErr != nil):
				t.Errorf("%s: %v, and in the library %v", overload.ID(), err, libraryErr)
			case steps[0] != steps[1]:
				t.Errorf("%s is a %s, and in the library a %s", overload.ID(), steps[1], steps[0])
			}
		}
	}
}

// A program takes as much memory as its expression, not as the language.
func TestProgramsAllocate(t *testing.T) {
	e, err := NewEnvironment(Options{})
	if err != nil {
		t.Fatal(err)
	}
	x, err := e.NewScope().Condition("object.metadata.name == 'web'")
	if err != nil {
		t.Fatal(err)
	}
	const times = 100
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		if _, err := x.plan.make(); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) / times; n > 12<<10 {
		t.Errorf("a program of %q allocates %d bytes", x.text, n)
	}
}

// An expression is checked against the variables that it names, however many others there are.
func TestVariablesAreLinear(t *testing.T) {
	e, err := NewEnvironment(Options{})
	if err != nil {
		t.Fatal(err)
	}
	allocations := func(n int) float64 {
		return testing.AllocsPerRun(1, func() {
			s := e.NewScope()
			s.declare("v0", types.IntType, nil)
			for i := range n {
				if err := s.Variable(fmt.Sprintf("v%d", i+1), fmt.Sprintf("variables.v%d + 1", i)); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	if once, twice := allocations(200), allocations(400); twice > 2.2*once {
		t.Errorf("200 variables that each use the one before take %v allocations, 400 take %v", once, twice)
	}
}

// The names that expressions may use have other forms too.
func TestVariablesOfAnyForm(t *testing.T) {
	e, err := NewEnvironment(Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := e.NewScope()
	for _, name := range []string{"a", "__namespace__", "x1_y", "ungewöhnlich"} {
		s.declare(name, types.StringType, nil)
	}
	for _, expression := range []string{"variables.a", "variables.namespace", "variables\n.x1_y", "has(variables.a)", "[1].map(i, variables.a)[0]", "variables . a", "size(variables.a+variables.x1_y)", "variables.`a`"} {
		if _, err := s.Compile(expression); err != nil {
			t.Errorf("%s: %v", expression, err)
		}
	}
}
