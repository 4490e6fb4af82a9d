package conformance

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// objects is a Source and a Reader of a few objects without schemas.
type objects []*unstructured.Unstructured

func (o objects) Len() int { return len(o) }

func (o objects) Target(i int) (engine.Target, error) {
	return engine.Target{Key: engine.KeyOf(o[i]), Object: o[i]}, nil
}

func (o objects) Pages(context.Context, []engine.Selection) iter.Seq2[engine.Page, error] {
	return func(yield func(engine.Page, error) bool) { yield(o, nil) }
}

func (o objects) Get(_ context.Context, k engine.ObjectKey) (*unstructured.Unstructured, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: k.Kind}, k.Name)
}

func (o objects) List(context.Context, engine.Selection) iter.Seq2[*unstructured.Unstructured, error] {
	return func(func(*unstructured.Unstructured, error) bool) {}
}

func (o objects) Schema(context.Context, schema.GroupVersionKind) (engine.Schema, error) {
	return engine.Schema{}, nil
}

func cluster(live, _ []*unstructured.Unstructured, _ engine.Request) (Cluster, error) {
	return Cluster{Objects: objects(live), World: &engine.World{Reader: objects(live)}}, nil
}

// language is a dialect of one rule that does what its function does to data.
type language struct {
	write func(old map[string]any) map[string]any
	steps func(engine.Step) engine.Step
}

func (language) Name() string                         { return "test" }
func (language) Accepts(schema.GroupKind) engine.Role { return engine.Policy }
func (language) Rules() []engine.RuleRef              { return []engine.RuleRef{{Policy: "p", Rule: "r"}} }
func (language) Selections() []engine.Selection       { return []engine.Selection{{Kind: "*"}} }
func (language) Describe() []engine.Description       { return nil }

func (l language) Compile(c engine.Compilation) (engine.Program, error) {
	if c.Documents[0].Object().GetName() == "broken" {
		return nil, errors.New("broken: spec is missing")
	}
	return l, nil
}

func (l language) Evaluate(_ context.Context, t engine.Target, _ *engine.World, s engine.Sink) (*unstructured.Unstructured, error) {
	data, _ := t.Object.Object["data"].(map[string]any)
	out := map[string]any{}
	for key, value := range t.Object.Object {
		out[key] = value
	}
	out["data"] = l.write(data)
	after := &unstructured.Unstructured{Object: out}
	step := engine.Step{Rule: l.Rules()[0], Outcome: engine.Changed, After: after}
	if l.steps != nil {
		step = l.steps(step)
	}
	s.Step(step)
	return after, nil
}

const settings = `Writes a key.
-- policy.test.yaml --
kind: Policy
metadata: {name: NAME}
-- live.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {a: "1", list: [{name: x}]}
-- want.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {a: "1", list: [{name: x}], b: "2"}
`

func caseOf(t *testing.T, l language, text string) *testCase {
	t.Helper()
	return readCase(t, l, txtar.Parse([]byte(text)), Options{NewCluster: cluster})
}

func checkOne(t *testing.T, l language, text string) string {
	t.Helper()
	if err := errors.Join(caseOf(t, l, text).check(t, false)...); err != nil {
		return err.Error()
	}
	return ""
}

func with(old map[string]any, key string, value any) map[string]any {
	out := map[string]any{key: value}
	for k, v := range old {
		if k != key {
			out[k] = v
		}
	}
	return out
}

func setB(old map[string]any) map[string]any { return with(old, "b", "2") }

func TestLawsAreKept(t *testing.T) {
	calls := 0
	cases := []struct {
		name     string
		language language
		text     string
		want     string
	}{
		{"nothing", language{write: setB}, settings, ""},
		{"nothing, with a trace", language{write: setB}, settings + "-- trace.test --\nConfigMap shop/settings\n  changed p/r\n    + .data.b: \"2\"  (p/r)\n", ""},
		{"the live object is written", language{write: func(old map[string]any) map[string]any {
			old["b"] = "2"
			return old
		}}, settings, "law: what was handed in is not modified"},
		{"another answer each time", language{write: func(old map[string]any) map[string]any {
			calls++
			return with(old, "b", strings.Repeat("x", calls))
		}}, settings, "law: the same question has the same answer"},
		{"it appends", language{write: func(old map[string]any) map[string]any {
			b, _ := old["b"].(string)
			return with(old, "b", b+"2")
		}}, settings, "law: evaluating the result changes nothing"},
		{"it says that it appends", language{write: setB}, "not idempotent: it appends\n" + settings, "and it is"},
		{"another result", language{write: func(old map[string]any) map[string]any { return with(old, "c", "3") }}, settings, "want.yaml"},
		{"another trace", language{write: setB}, settings + "-- trace.test --\nnothing\n", "trace.test"},
		{"an unexpected failure", language{write: setB, steps: func(s engine.Step) engine.Step {
			return engine.Step{Rule: s.Rule, Outcome: engine.Failed, Err: errors.New("no such thing")}
		}}, settings, "no such thing"},
		{"an unexpected refusal", language{write: setB}, strings.Replace(settings, "NAME", "broken", 1), "spec is missing"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if problems := checkOne(t, c.language, c.text); !strings.Contains(problems, c.want) || c.want == "" && problems != "" {
				t.Errorf("said %q, want it to say %q", problems, c.want)
			}
		})
	}
}

func TestUpdateRewritesResults(t *testing.T) {
	c := caseOf(t, language{write: setB}, strings.Replace(settings, `, b: "2"}`, "}", 1)+"-- trace.test --\nnothing\n")
	if err := errors.Join(c.check(t, true)...); err != nil {
		t.Fatal(err)
	}
	if problems := checkOne(t, language{write: setB}, string(txtar.Format(c.archive))); problems != "" {
		t.Error(problems)
	}
}

func TestFieldsThatDoNotAddUp(t *testing.T) {
	before := caseOf(t, language{}, settings).live[0]
	after := before.DeepCopy()
	if err := unstructured.SetNestedField(after.Object, "2", "data", "b"); err != nil {
		t.Fatal(err)
	}
	writer := engine.RuleRef{Policy: "p", Rule: "r"}
	name := "data"
	data := fieldpath.Path{{FieldName: &name}}
	change := engine.Change{
		Before: before, After: after,
		Steps:  []engine.Step{{Rule: writer, Outcome: engine.Changed, After: after}},
		Fields: []engine.FieldChange{{Writer: &writer, Path: data, Kind: engine.Replaced, To: map[string]any{"b": "2"}}},
	}
	a := answer{changes: []*engine.Change{&change}, typeOf: func(schema.GroupVersionKind) diff.Type { return diff.Type{} }}
	said := errors.Join(a.broken()...)
	if said == nil || !strings.Contains(said.Error(), "law: before and fields give after") {
		t.Errorf("said %v of a field that loses its neighbours", said)
	}
	change.Fields[0].To, change.Fields[0].Writer = after.Object["data"], &engine.RuleRef{Policy: "other"}
	said = errors.Join(a.broken()...)
	if said == nil || !strings.Contains(said.Error(), "law: every field has a writer") {
		t.Errorf("said %v of a field that nobody wrote", said)
	}
}
