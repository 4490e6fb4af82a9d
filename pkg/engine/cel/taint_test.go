package cel

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/cel/library"
)

// taintNotes are Secrets for which a value is known that mentions "s3cret", or what was
// derived. They record what is reported to them.
type taintNotes struct{ derived []string }

func (n *taintNotes) Any() bool { return true }

func (n *taintNotes) Known(value any) bool {
	text := textOf(value)
	return strings.Contains(text, "s3cret") || slices.ContainsFunc(n.derived, func(d string) bool { return strings.Contains(text, d) })
}

func (n *taintNotes) Derive(result any, from ...any) {
	if result != nil && n.Known(from) {
		n.derived = append(n.derived, textOf(result))
	}
}

func textOf(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(data)
}

// program plans an expression as celpatch does.
func program(t testing.TB, text string, watched bool) celgo.Program {
	t.Helper()
	env, err := celgo.NewEnv(
		celgo.Variable("object", celgo.DynType), celgo.Variable("name", celgo.StringType), celgo.OptionalTypes(),
		ext.Strings(), ext.Encoders(), ext.Lists(), ext.Regex(), ext.Sets(), ext.TwoVarComprehensions(), ext.Bindings(),
		library.Regex(), library.URLs(), library.Quantity(),
	)
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	options := []celgo.ProgramOption{
		celgo.EvalOptions(celgo.OptOptimize, celgo.OptTrackCost), celgo.CostTracking(&library.CostEstimator{}), celgo.InterruptCheckFrequency(100),
	}
	if watched {
		options = append(options, watchTaint(ast))
	}
	p, err := env.Program(ast, options...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// evaluateTaint gives a result, or an error, and the cost; a nil witness watches nothing.
func evaluateTaint(t testing.TB, p celgo.Program, w *taint) (string, uint64) {
	t.Helper()
	input := map[string]any{
		"name": "web",
		"object": map[string]any{
			"data":   map[string]any{"password": "s3cret-word", "url": "https://s3cret.example:80/x", "n": int64(7), "plain": "abc"},
			"labels": map[string]any{"app": "web"},
			"list":   []any{"a", "s3cret", "b"},
		},
	}
	if w != nil {
		input[taintName] = w
	}
	v, details, err := p.ContextEval(t.Context(), input)
	return shown(v, err), *details.ActualCost()
}

func shown(v ref.Val, err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%v %v", v.Type(), v.Value())
}

func TestTaint(t *testing.T) {
	for expression, want := range map[string][]string{
		// What is handed on, counted or compared makes nothing new.
		"object.data.password":                                      nil,
		"[object.data.password, name]":                              nil,
		"{'a': object.data.password}":                               nil,
		"size(object.data.password) + 1":                            nil,
		"object.data.password.contains('word')":                     nil,
		"object.data.password == 'x' ? name : 'b'":                  nil,
		"object.list + ['c']":                                       nil,
		"object.list.map(x, x)":                                     nil,
		"object.list.filter(x, x != 'a')":                           nil,
		"has(object.data.password)":                                 nil,
		"[1, 2].map(i, string(i))":                                  nil,
		"string(1)":                                                 nil,
		"name + '-' + object.labels.app":                            nil,
		"name.upperAscii() + object.data.plain":                     nil,
		"[object.data.password, name.upperAscii()][1]":              nil,
		"object.data[?'none'].orValue(name.upperAscii())":           nil,
		"object.data.map(k, k.upperAscii()).size()":                 nil,
		"cel.bind(p, object.data.password, name.upperAscii())":      nil,
		"object.data.password.size() > 3 ? name.upperAscii() : 'x'": nil,

		"object.data.password.upperAscii()":                                        {"S3CRET-WORD"},
		"object.data['pass' + 'word'].substring(0, 3)":                             {"s3c"},
		"object.data[?'password'].orValue('x').substring(1)":                       {"3cret-word"},
		"'x' + object.data.password":                                               {"xs3cret-word"},
		"string(bytes(object.data.password))":                                      {"s3cret-word", "s3cret-word"},
		"base64.encode(bytes(object.data.password))":                               {"s3cret-word", "czNjcmV0LXdvcmQ="},
		"object.list.map(x, x.upperAscii())":                                       {"S3CRET"},
		"object.list.map(x, x.upperAscii()).join('.')":                             {"S3CRET", "A.S3CRET.B"},
		"object.list.join('')":                                                     {"as3cretb"},
		"object.data.transformList(k, v, k == 'password', string(v).reverse())[0]": {"s3cret-word", "drow-terc3s"},
		"'%s'.format([object.data.password])":                                      {"s3cret-word"},
		"object.data.password.split('-')":                                          {`["s3cret","word"]`},
		"object.data.password.split('-')[1].upperAscii()":                          {`["s3cret","word"]`, "WORD"},
		"object.data.password.find('w[a-z]+')":                                     {"word"},
		"regex.extract(object.data.password, 'w[a-z]+').value()":                   {"word", "word"},
		"object.data.password.matches('^s') ? name : 'b'":                          nil,
		"url(object.data.url).getHost()":                                           {"https://s3cret.example:80/x", "s3cret.example:80"},
		"cel.bind(p, object.data.password, p.upperAscii())":                        {"S3CRET-WORD"},
		"cel.bind(p, object.data.password.upperAscii(), p + p)":                    {"S3CRET-WORD", "S3CRET-WORDS3CRET-WORD"},
		"(name == 'x' ? name : object.data.password).upperAscii()":                 {"S3CRET-WORD"},
		"name + '-' + object.data.password":                                        {"web-s3cret-word"},
		"'x'.upperAscii() + string(1) + object.data.password":                      {"X1s3cret-word"},

		// An error may quote what it is about.
		"quantity(object.data.password)":              {"quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
		"object.data.password.substring(50)":          {"index out of range: 50"},
		"name.substring(50) + object.data.password":   nil,
		"size(object.data.password) / object.data.n":  nil,
		"object.data.plain.substring(1) + name":       nil,
		"'%s'.format([object.data]).size() > 3":       {`{n: 7, password: s3cret-word, plain: abc, url: https://s3cret.example:80/x}`},
		"object.data.password.charAt(0) in ['a','s']": {"s"},
	} {
		t.Run(expression, func(t *testing.T) {
			var told taintNotes
			result, cost := evaluateTaint(t, program(t, expression, true), newTaint(&told))
			slices.Sort(told.derived)
			slices.Sort(want)
			if diff := cmp.Diff(want, told.derived); diff != "" {
				t.Errorf("derived (-want +got):\n%s", diff)
			}
			plain, plainCost := evaluateTaint(t, program(t, expression, false), nil)
			if result != plain || cost != plainCost {
				t.Errorf("gives %s for %d units, and %s for %d without a witness", result, cost, plain, plainCost)
			}
		})
	}
}

func TestTaintIsOptional(t *testing.T) {
	p := program(t, "object.list.map(x, x.upperAscii()).join('.')", true)
	if got, _ := evaluateTaint(t, p, nil); got != "string A.S3CRET.B" {
		t.Errorf("got %s", got)
	}
}

// recorder records what is reported to it; it knows all values.
type recorder struct{ from, results []any }

func (*recorder) Any() bool      { return true }
func (*recorder) Known(any) bool { return true }
func (r *recorder) Derive(result any, from ...any) {
	r.results, r.from = append(r.results, result), append(r.from, from)
}

func TestTaintDerive(t *testing.T) {
	var told recorder
	evaluateTaint(t, program(t, "'DB://'.lowerAscii() + object.data.password.upperAscii() + '@' + name", true), newTaint(&told))
	want := []any{
		[]any{"s3cret-word"},
		[]any{"db://", "S3CRET-WORD"},
		[]any{"db://S3CRET-WORD", "@"},
		[]any{"db://S3CRET-WORD@", "web"},
	}
	if diff := cmp.Diff(want, told.from); diff != "" {
		t.Errorf("made of (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{"S3CRET-WORD", "db://S3CRET-WORD", "db://S3CRET-WORD@", "db://S3CRET-WORD@web"}, told.results); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

// open are Secrets among which nothing is known.
type open struct{ told int }

func (*open) Any() bool            { return true }
func (*open) Known(any) bool       { return false }
func (o *open) Derive(any, ...any) { o.told++ }

func TestTaintOfBigValues(t *testing.T) {
	p := program(t, "object.join('')", true)
	for elements, want := range map[int]int{9_000: 0, 10_000: 1} {
		var o open
		input := map[string]any{"object": slices.Repeat([]any{"x"}, elements), taintName: newTaint(&o)}
		if _, _, err := p.ContextEval(t.Context(), input); err != nil || o.told != want {
			t.Errorf("%v, %d elements: told of %d results, want %d", err, elements, o.told, want)
		}
	}
}

func BenchmarkEvaluate(b *testing.B) {
	const expression = "object.list.map(x, x + '-' + name).join('.') + object.labels.app.upperAscii()"
	for _, watched := range []bool{false, true} {
		p := program(b, expression, watched)
		b.Run(fmt.Sprintf("watched=%t", watched), func(b *testing.B) {
			for b.Loop() {
				var w *taint
				if watched {
					w = newTaint(&taintNotes{})
				}
				evaluateTaint(b, p, w)
			}
		})
	}
}
