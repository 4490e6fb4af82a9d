package cel_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/mutatingpolicy/library"
)

// mostAllocated is what one rule may allocate on one object, in bytes, all that it lets go
// again counted.
const mostAllocated = 200 << 20

// hostile are values of each type that are as bad as a policy or an object can make them.
func hostile(kind types.Kind) []string {
	switch kind {
	case types.StringKind:
		return []string{
			"object.text", "object.regex", "object.backreferences", "object.precision", "object.quantity", "object.json", "object.yaml",
			"object.url", "object.digits", "object.dots", "''", "'a'", "object.braces",
		}
	case types.BytesKind:
		return []string{"bytes(object.text)", "b''"}
	case types.IntKind:
		return []string{"999999999", "9223372036854775807", "-1", "0"}
	case types.UintKind:
		return []string{"18446744073709551615u", "0u"}
	case types.DoubleKind:
		return []string{"1e308", "-0.0"}
	case types.BoolKind:
		return []string{"true", "false"}
	case types.ListKind:
		return []string{"object.texts", "object.numbers", "object.lists", "variables.doubled", "object.maps", "variables.repeated", "[]"}
	case types.MapKind:
		return []string{"object.map", "{}", "{'a': variables.doubled}", "object.nested"}
	case types.TimestampKind:
		return []string{"timestamp('2024-01-01T00:00:00Z')"}
	case types.DurationKind:
		return []string{"duration('1ns')"}
	case types.NullTypeKind:
		return []string{"null"}
	case types.TypeKind:
		return []string{"type(1)"}
	default:
		return nil
	}
}

// opaqueValues are expressions for the types that only functions make.
func opaqueValues(name string) []string {
	switch name {
	case "kubernetes.Quantity":
		return []string{"quantity('1e100')", "quantity('0.000000000000000000000000000000000000001')", "quantity(object.quantity)"}
	case "kubernetes.Semver":
		return []string{"semver('1.2.3')"}
	case "kubernetes.URL":
		return []string{"url(object.url)"}
	case "kubernetes.NamedFormat":
		return []string{"format.dns1123Subdomain()", "format.uri()"}
	case "net.IP":
		return []string{"ip('::1')"}
	case "net.CIDR":
		return []string{"cidr('10.0.0.0/8')"}
	case "kubernetes.authorization.Authorizer":
		return []string{"authorizer"}
	case "kubernetes.authorization.PathCheck":
		return []string{"authorizer.path(object.text)"}
	case "kubernetes.authorization.GroupCheck":
		return []string{"authorizer.group(object.text)"}
	case "kubernetes.authorization.ResourceCheck":
		return []string{"authorizer.group('').resource('pods')"}
	case "kubernetes.authorization.Decision":
		return []string{"authorizer.path('/').check('get')"}
	case "kyverno.image":
		return []string{"image('ghcr.io/a/b:c')"}
	case "resource.Context", "globalcontext.Context", "http.Context", "imagedata.Context", "json.Json", "yaml.Yaml":
		lib, _, _ := strings.Cut(name, ".")
		return []string{map[string]string{"globalcontext": "globalContext", "imagedata": "image"}[lib] + map[string]string{"resource": "resource", "http": "http", "json": "json", "yaml": "yaml"}[lib]}
	case "schema.GroupVersionResource":
		return []string{"resource.ToGVR('v1', 'Pod')"}
	case "optional_type":
		return []string{"optional.of(object.text)", "optional.of(variables.doubled)", "optional.none()"}
	}
	return nil
}

func valuesOf(t *types.Type) []string {
	if found := opaqueValues(t.TypeName()); found != nil {
		return found
	}
	if found := hostile(t.Kind()); found != nil {
		return found
	}
	return slices.Concat(hostile(types.StringKind), hostile(types.ListKind), hostile(types.MapKind), hostile(types.IntKind))
}

// macros call the functions that an expression cannot spell.
func macros() map[string][]string {
	return map[string][]string{
		"@sortByAssociatedKeys": {"object.texts.sortBy(x, x)", "object.numbers.sortBy(x, -int(x))"},
		"cel.@mapInsert":        {"object.texts.transformMap(i, v, v)", "object.texts.transformMapEntry(i, v, {string(i): v})"},
		"@draw":                 {"random(object.regex)", "random('[a-z]{1000}')"},
		"math.@max":             {"math.greatest(object.numbers)", "math.greatest(1, 2.0)"},
		"math.@min":             {"math.least(object.numbers)", "math.least(1, 2.0)"},
		"@in":                   {"object.text in object.texts", "variables.doubled in variables.repeated", "'a' in object.map", "object.text in ['a', 'b']"},
		"_?_:_":                 {"true ? object.text : object.text"},
		"_?._":                  {"object.?text"},
		"@not_strictly_false":   {"object.numbers.all(x, true)"},
	}
}

// internal are the functions that only the library itself calls.
func internal(name string) bool {
	return slices.Contains([]string{"__not_strictly_false__", "_in_", "in", "cel.@block"}, name)
}

// calls returns expressions that call an overload, so that each hostile value is an
// argument of one at least.
func calls(name string, o *decls.OverloadDecl) []string {
	if internal(name) {
		return nil
	}
	if found := macros()[name]; found != nil {
		return found
	}
	choices, most := make([][]string, len(o.ArgTypes())), 1
	for i, t := range o.ArgTypes() {
		choices[i] = valuesOf(t)
		most = max(most, len(choices[i]))
	}
	var out []string
	for i := range most {
		args := make([]string, len(choices))
		for j, c := range choices {
			args[j] = c[i%len(c)]
		}
		out = append(out, spell(name, o.IsMemberFunction(), args))
	}
	return out
}

func spell(name string, member bool, args []string) string {
	if operator, ok := operators.FindReverse(name); ok && operator != "" {
		if len(args) == 1 {
			return operator + "(" + args[0] + ")"
		}
		return args[0] + " " + operator + " " + args[1]
	}
	switch {
	case name == operators.Index:
		return args[0] + "[" + args[1] + "]"
	case name == operators.OptIndex:
		return args[0] + "[?" + args[1] + "]"
	case member:
		return args[0] + "." + name + "(" + strings.Join(args[1:], ", ") + ")"
	}
	return name + "(" + strings.Join(args, ", ") + ")"
}

func hostileObject() map[string]any {
	text := strings.Repeat("a", 300_000)
	var texts, numbers, lists, many []any
	fields := map[string]any{}
	for i := range 3_000 {
		texts = append(texts, strings.Repeat("a", 40)+fmt.Sprint(i))
		numbers = append(numbers, int64(i))
		lists = append(lists, []any{int64(i), []any{int64(i)}})
		many = append(many, map[string]any{"name": fmt.Sprint(i), "value": text})
		fields[fmt.Sprint(i)] = text
	}
	nested := any("x")
	for range 200 {
		nested = map[string]any{"a": nested}
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c"},
		"text": text, "few": numbers[:50], "texts": texts, "numbers": numbers, "lists": lists, "maps": many, "map": fields, "nested": nested,
		"regex": strings.Repeat("x{0,1000}", 1000), "backreferences": strings.Repeat(`\0`, 100_000), "precision": "%.999999999f %.999999999e %s",
		"quantity": "1e999999999", "json": "[" + strings.Repeat("{},", 300_000) + "{}]", "yaml": strings.Repeat("- [{}, {}, {}]\n", 60_000),
		"url": "https://" + text, "digits": strings.Repeat("9", 300_000), "dots": strings.Repeat("1.", 500_000), "braces": strings.Repeat("[", 100_000),
	}
}

type allowsAll struct{}

func (allowsAll) Authorize(context.Context, engine.AccessRequest) (engine.AccessDecision, error) {
	return engine.AccessDecision{Allowed: true}, nil
}

// hostileScope compiles the calls of one language.
type hostileScope struct {
	*cel.Scope
	object map[string]any
	seen   map[string]bool
	calls  int
}

func newHostileScope(t *testing.T, e *cel.Environment) *hostileScope {
	t.Helper()
	s := e.NewScope()
	for name, text := range map[string]string{"doubled": doubled, "repeated": "object.few.map(n, object.text)"} {
		if err := s.Variable(name, text); err != nil {
			t.Fatal(err)
		}
	}
	return &hostileScope{Scope: s, object: hostileObject(), seen: map[string]bool{}}
}

// Every function that an expression can call ends within its budget, once and in a loop.
func TestEveryFunctionIsBounded(t *testing.T) {
	known := map[string]bool{} // overloads that both languages have
	for _, o := range []cel.Options{
		{Params: true, Authorizer: true, PatchTypes: true},
		{RequestObjects: true, PatchTypes: true, Extensions: library.Options(false)},
	} {
		environment, err := cel.NewEnvironment(o)
		if err != nil {
			t.Fatal(err)
		}
		s := newHostileScope(t, environment)
		for _, name := range slices.Sorted(maps.Keys(environment.Functions())) {
			before, overloads := s.calls, 0
			for _, overload := range environment.Functions()[name].OverloadDecls() {
				if id := name + " " + overload.ID(); !known[id] && !internal(name) {
					known[id] = true
					overloads++
					s.call(t, calls(name, overload), overloads == 1)
				}
			}
			if overloads > 0 && s.calls == before {
				t.Errorf("no call of %s compiles: the test does not reach it", name)
			}
		}
		t.Logf("%d calls of %d overloads", s.calls, len(known))
	}
}

// call evaluates expressions, and perhaps the first of them in a loop as well.
func (s *hostileScope) call(t *testing.T, expressions []string, loop bool) {
	t.Helper()
	if loop {
		expressions = append(expressions, "object.few.map(n, size([dyn("+expressions[0]+")])).size()")
	}
	for _, expression := range expressions {
		if !s.seen[expression] {
			s.seen[expression] = true
			s.evaluate(t, expression)
		}
	}
}

func (s *hostileScope) evaluate(t *testing.T, expression string) {
	t.Helper()
	x, err := s.Compile(expression)
	if err != nil {
		var refused *cel.CompileError
		if !errors.As(err, &refused) || strings.Contains(err.Error(), "panic") {
			t.Errorf("%s: %v", expression, err)
		}
		return
	}
	s.calls++
	if err := cel.Plan(x); err != nil {
		t.Errorf("%s compiles, but has no program: %v", expression, err)
	}
	w := &engine.World{Limits: engine.DefaultLimits()}
	session := library.NewSession(t.Context(), w, library.Settings{Entries: &library.Entries{}})
	in := cel.Input{Object: s.object, Access: allowsAll{}, Extra: session.Bindings()}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	_, err = s.Evaluate(t.Context(), in, cel.MutationBudget()).Value(x)
	elapsed := time.Since(began)
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > mostAllocated {
		t.Errorf("%s allocates %d MB: %v", expression, allocated>>20, err)
	}
	if elapsed > time.Minute { // a net alone: what is bounded are the steps
		t.Errorf("%s takes %s: %v", expression, elapsed, err)
	}
}

// doubled is a list that holds another twice, which holds another twice, and so on.
const doubled = "[[1]].map(a, [a, a]).map(a, [a, a]).map(a, [a, a]).map(a, [a, a]).map(a, [a, a]).map(a, [a, a]).map(a, [a, a])" +
	".map(a, [a, a]).map(a, [a, a]).map(a, [a, a]).map(a, [a, a]).map(a, [a, a]).map(a, [a, a]).map(a, [a, a])"
