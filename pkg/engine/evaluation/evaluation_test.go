package evaluation_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
)

func configMap(name string, data ...string) *unstructured.Unstructured {
	d := map[string]any{}
	for i := 0; i+1 < len(data); i += 2 {
		d[data[i]] = data[i+1]
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "namespace": "default"}, "data": d,
	}}
}

func with(u *unstructured.Unstructured, key, value string) *unstructured.Unstructured {
	out := u.DeepCopy()
	_ = unstructured.SetNestedField(out.Object, value, "data", key)
	return out
}

// world serves a list of objects, in pages of two.
type world []*unstructured.Unstructured

func (w world) Get(_ context.Context, k engine.ObjectKey) (*unstructured.Unstructured, error) {
	for _, u := range w {
		if engine.KeyOf(u).Named() == k.Named() {
			return u, nil
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: k.Kind}, k.Name)
}

func (w world) List(_ context.Context, s engine.Selection) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		for _, u := range w {
			if s.Matches(u) && !yield(u, nil) {
				return
			}
		}
	}
}

func (w world) Schema(context.Context, schema.GroupVersionKind) (engine.Schema, error) {
	return engine.Schema{}, nil
}

func (w world) Pages(context.Context, []engine.Selection) iter.Seq2[engine.Page, error] {
	return func(yield func(engine.Page, error) bool) {
		for i := 0; i < len(w); i += 2 {
			if !yield(page(w[i:min(i+2, len(w))]), nil) {
				return
			}
		}
	}
}

type page []*unstructured.Unstructured

func (p page) Len() int { return len(p) }

func (p page) Target(i int) (engine.Target, error) {
	return engine.Target{Key: engine.KeyOf(p[i]), Object: p[i]}, nil
}

// rule is a program of one rule that writes one key of every ConfigMap.
type rule struct {
	name, key string
	value     func(engine.Target) string
}

func (r rule) ref() engine.RuleRef     { return engine.RuleRef{Policy: r.name} }
func (r rule) Rules() []engine.RuleRef { return []engine.RuleRef{r.ref()} }
func (r rule) Selections() []engine.Selection {
	return []engine.Selection{{Version: "v1", Kind: "ConfigMap"}}
}

func (r rule) Describe() []engine.Description {
	return []engine.Description{{Rule: r.ref(), Matches: r.Selections()}}
}

func (r rule) write(t engine.Target) engine.Step {
	return engine.Step{Rule: r.ref(), Outcome: engine.Changed, After: with(t.Object, r.key, r.value(t))}
}

func (r rule) Evaluate(_ context.Context, t engine.Target, _ *engine.World, s engine.Sink) (*unstructured.Unstructured, error) {
	if t.Request.Reinvocation {
		return t.Object, nil
	}
	step := r.write(t)
	s.Step(step)
	return step.After, nil
}

func constant(v string) func(engine.Target) string { return func(engine.Target) string { return v } }

// appender is a mutate-existing rule: every ConfigMap that is a trigger appends
// its name to a key of the target.
type appender struct {
	rule
	target engine.Selection
}

func (a appender) Evaluate(_ context.Context, t engine.Target, _ *engine.World, _ engine.Sink) (*unstructured.Unstructured, error) {
	return t.Object, nil
}
func (a appender) Propagates() bool { return true }

func (a appender) Describe() []engine.Description {
	return []engine.Description{{Rule: a.ref(), Matches: a.Selections(), Existing: engine.ByTrigger}}
}

func (a appender) Effects(_ context.Context, t engine.Target, _ *engine.World, _ engine.Sink) ([]engine.Effect, error) {
	if !strings.HasPrefix(t.Key.Name, "trigger") {
		return nil, nil
	}
	return []engine.Effect{a.append(t.Key)}, nil
}

// append appends the name of the trigger.
func (a appender) append(trigger engine.ObjectKey) engine.Effect {
	apply := func(_ context.Context, t engine.Target, _ *engine.World, _ engine.Sink) engine.Step {
		before, _, _ := unstructured.NestedString(t.Object.Object, "data", a.key)
		step := rule{a.name, a.key, constant(before + trigger.Name + ";")}.write(t)
		step.TriggeredBy = &trigger
		return step
	}
	return engine.Effect{Rule: a.ref(), Trigger: trigger, Subjects: a.target, Apply: apply}
}

func run(t *testing.T, w world, programs ...engine.Program) []*engine.Change {
	t.Helper()
	e := evaluation.New(programs, &engine.World{Reader: w}, evaluation.Options{Workers: 3})
	if err := e.Prepare(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	var out []*engine.Change
	if err := e.Run(t.Context(), w, func(c *engine.Change) error { out = append(out, c); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

func told(changes []*engine.Change) []string {
	var out []string
	for _, c := range changes {
		line := c.Subject.Name
		for _, f := range c.Fields {
			line += fmt.Sprintf(" %s=%v by %s", f.Path, f.To, f.Rule())
		}
		for _, s := range c.Steps {
			if s.Err != nil {
				line += fmt.Sprintf(" %s: %v", s.Outcome, s.Err)
			}
		}
		out = append(out, line)
	}
	return out
}

func TestRunAttributesFieldsToTheirLastWriter(t *testing.T) {
	got := told(run(t, world{configMap("a")},
		rule{"first", "x", constant("1")}, rule{"second", "y", constant("2")}, rule{"third", "x", constant("3")}))
	want := []string{"a .data.x=3 by third .data.y=2 by second"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// resources lists by resource and version as a server does: "secrets" has objects whose name begins
// with it, and so has "v1".
type resources struct{ world }

func (r resources) List(ctx context.Context, s engine.Selection) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		for u, err := range r.world.List(ctx, s) {
			if strings.HasPrefix(u.GetName(), s.Resource) && strings.HasPrefix(u.GetName(), s.ReadAs) && !yield(u, err) {
				return
			}
		}
	}
}

// TestRunReadsEverySelection has rules whose selections differ in one field.
func TestRunReadsEverySelection(t *testing.T) {
	w := world{configMap("trigger-1"), configMap("a"), configMap("b")}
	for _, c := range [][2]engine.Selection{
		{{Kind: "*", Resource: "a"}, {Kind: "*", Resource: "b"}},
		{{Kind: "*", ReadAs: "a"}, {Kind: "*", ReadAs: "b"}},
		{{Kind: "ConfigMap", Name: "a"}, {Kind: "ConfigMap", Name: "b"}},
	} {
		var programs []engine.Program
		for i, s := range c {
			programs = append(programs, appender{rule{name: fmt.Sprint(i), key: "names"}, s})
		}
		e := evaluation.New(programs, &engine.World{Reader: resources{w}}, evaluation.Options{})
		if err := e.Prepare(t.Context(), w[:1]); err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		if err := e.Run(t.Context(), w[:1], func(c *engine.Change) error { seen[c.Subject.Name] = true; return nil }); err != nil {
			t.Fatal(err)
		}
		if !seen["a"] || !seen["b"] {
			t.Errorf("%+v: saw %v", c, seen)
		}
	}
}

// scaled serves a Scale for every ConfigMap's scale subresource.
type scaled struct{ world }

func (s scaled) Get(ctx context.Context, k engine.ObjectKey) (*unstructured.Unstructured, error) {
	if k.Subresource != "scale" {
		return s.world.Get(ctx, k)
	}
	u := configMap(k.Name)
	u.SetAPIVersion("autoscaling/v1")
	u.SetKind("Scale")
	return u, nil
}

func TestRunTreatsSubresourcesAsTargets(t *testing.T) {
	w := world{configMap("trigger-1"), configMap("web-1"), configMap("web-2")}
	for _, name := range []string{"web-1", "web-*"} {
		p := appender{rule{name: "log", key: "names"}, engine.Selection{Kind: "ConfigMap", Subresource: "scale", Namespace: "default", Name: name}}
		e := evaluation.New([]engine.Program{p}, &engine.World{Reader: scaled{w}}, evaluation.Options{})
		if err := e.Prepare(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		var got []string
		err := e.Run(t.Context(), w, func(c *engine.Change) error {
			if c.Changed() {
				got = append(got, c.Subject.String()+" "+c.After.GetKind())
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"ConfigMap/scale default/web-1 Scale", "ConfigMap/scale default/web-2 Scale"}
		if name == "web-1" {
			want = want[:1]
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestRunAfterAPanic(t *testing.T) {
	boom := rule{"boom", "x", func(engine.Target) string { panic("index out of range") }}
	c := run(t, world{configMap("a")}, boom, rule{"after", "y", constant("1")})[0]
	var p *engine.PanicError
	if len(c.Steps) != 2 || !errors.As(c.Steps[0].Err, &p) || !strings.HasPrefix(p.Place, "evaluation_test.go:") || len(c.Fields) != 1 {
		t.Errorf("told %q", told([]*engine.Change{c}))
	}
}

func TestRunGoesOnAfterAnUnreadablePart(t *testing.T) {
	e := evaluation.New([]engine.Program{rule{"r", "x", constant("1")}}, &engine.World{}, evaluation.Options{})
	n := 0
	if err := e.Run(t.Context(), partly{}, func(*engine.Change) error { n++; return nil }); err != nil {
		t.Fatal(err)
	}
	if n != 1 || len(e.Unreadable()) != 1 {
		t.Errorf("%d objects, %d unreadable parts", n, len(e.Unreadable()))
	}
}

type partly struct{}

func (partly) Pages(context.Context, []engine.Selection) iter.Seq2[engine.Page, error] {
	return func(yield func(engine.Page, error) bool) {
		_ = yield(nil, &engine.UnreadableError{What: "secrets", Err: errors.New("forbidden")}) &&
			yield(page{configMap("a")}, nil)
	}
}
