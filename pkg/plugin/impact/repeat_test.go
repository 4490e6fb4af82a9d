package impact

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

// labeller is a program whose rules each write one label of every object.
type labeller struct {
	rules []labelRule
	runs  *atomic.Int64
}

type labelRule struct {
	name, label string
	value       func(old string) string
}

func (p labeller) Rules() []engine.RuleRef {
	var out []engine.RuleRef
	for _, r := range p.rules {
		out = append(out, engine.RuleRef{Policy: r.name})
	}
	return out
}

func (p labeller) Selections() []engine.Selection {
	return []engine.Selection{{Version: "v1", Kind: "ConfigMap"}}
}

func (p labeller) Describe() []engine.Description { return nil }

func (p labeller) Evaluate(_ context.Context, t engine.Target, _ *engine.World, s engine.Sink) (*unstructured.Unstructured, error) {
	p.runs.Add(1)
	object := t.Object
	for _, r := range p.rules {
		old := object.GetLabels()[r.label]
		step := engine.Step{Rule: engine.RuleRef{Policy: r.name}, Outcome: engine.Unchanged}
		if v := r.value(old); v != old {
			next := object.DeepCopy()
			labels := map[string]string{}
			for k, v := range object.GetLabels() {
				labels[k] = v
			}
			labels[r.label] = v
			next.SetLabels(labels)
			step.Outcome, step.After = engine.Changed, next
			object = next
		}
		s.Step(step)
	}
	return object, nil
}

func always(v string) func(string) string { return func(string) string { return v } }

func TestReviewFindsRulesThatAreNotIdempotent(t *testing.T) {
	prefix := func(old string) string { return "x" + old }
	once := func(old string) string {
		if old == "" || old[0] != 'x' {
			return "x" + old
		}
		return old
	}
	for _, c := range []struct {
		why   string
		rules []labelRule
		want  []string
	}{
		{"one that settles", []labelRule{{"a", "k", always("v")}}, nil},
		{"two that agree", []labelRule{{"a", "k", always("v")}, {"b", "k", always("v")}}, nil},
		{"one that goes on", []labelRule{{"a", "k", prefix}}, []string{
			"not-idempotent: each run changes it once more: evaluated on its own result, a writes metadata.labels.k",
		}},
		{"two that fight", []labelRule{{"a", "k", always("v")}, {"b", "k", always("w")}}, []string{
			"overwritten: b overwrites what a wrote: metadata.labels.k",
		}},
		{"two that take turns", []labelRule{{"a", "k", always("v")}, {"b", "k", prefix}}, []string{
			"overwritten: b overwrites what a wrote: metadata.labels.k",
		}},
		{"one that builds on the other", []labelRule{
			{"a", "k", func(old string) string {
				if old == "" {
					return "v"
				}
				return old
			}},
			{"b", "k", once},
		}, nil},
		{"two that undo each other", []labelRule{{"a", "there", always("v")}, {"b", "there", always("live")}}, []string{
			"overwritten: b overwrites what a wrote: metadata.labels.there",
		}},
	} {
		t.Run(c.why, func(t *testing.T) {
			got := reviewed(t, labeller{c.rules, new(atomic.Int64)}, 1)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestReviewRepeatsOncePerKindOfChange(t *testing.T) {
	var runs atomic.Int64
	got := reviewed(t, labeller{[]labelRule{{"a", "k", func(old string) string { return "x" + old }}}, &runs}, 50)
	if len(got) != 50 {
		t.Errorf("%d of 50 objects are said to change again", len(got))
	}
	if runs.Load() != 51 {
		t.Errorf("%d evaluations of 50 objects that change alike", runs.Load())
	}
}

// Of objects that differ in how many containers they have, one that has one is evaluated again, and one that
// has several.
func TestKindOfChangeCountsElementsToTwo(t *testing.T) {
	changed := func(fields ...string) string {
		step := engine.Step{Rule: engine.RuleRef{Policy: "p"}, Outcome: engine.Changed}
		for i, name := range fields {
			path := fieldpath.MakePathOrDie("spec", "containers", i, name)
			step.Fields = append(step.Fields, engine.FieldChange{Path: path, Kind: engine.Replaced})
		}
		return kindOf(&engine.Change{Steps: []engine.Step{step}})
	}
	one, two := changed("image"), changed("image", "image")
	if one == two {
		t.Errorf("one container %q, two %q", one, two)
	}
	if three := changed("image", "image", "image"); three != two {
		t.Errorf("two containers %q, three %q", two, three)
	}
	if other := changed("image", "name"); other == one {
		t.Errorf("other fields are of the same kind: %q", other)
	}
}

// Which object stands for all that change alike must not depend on which worker is the quickest.
func TestReviewRepeatsTheFirstOfAKind(t *testing.T) {
	rules := labeller{[]labelRule{{"a", "k", func(old string) string {
		return map[string]string{"calm": "calmed", "wild": "wilder", "calmed": "calmed", "wilder": "wildest"}[old]
	}}}, new(atomic.Int64)}
	reviewer := &Reviewer{}
	e := evaluation.New([]engine.Program{rules}, &engine.World{}, evaluation.Options{})
	var changes []*engine.Change
	var reviews []func(context.Context, *evaluation.Evaluation) error
	for _, label := range []string{"calm", "wild"} {
		u := conformance.ReadObject(t, fmt.Appendf(nil, "{apiVersion: v1, kind: ConfigMap, metadata: {name: %[1]s, labels: {k: %[1]s}}}", label))
		c, err := e.Evaluate(t.Context(), engine.Target{Key: engine.KeyOf(u), Object: u}, true)
		if err != nil {
			t.Fatal(err)
		}
		changes = append(changes, c)
		reviews = append(reviews, reviewer.Review(c))
	}
	for i, c := range slices.Backward(changes) {
		if err := reviews[i](t.Context(), e); err != nil {
			t.Fatal(err)
		}
		if len(c.Impacts) > 0 {
			t.Errorf("%s: %v, although the result of the first object does not change again", c.Subject, c.Impacts)
		}
	}
}

func reviewed(t *testing.T, p engine.Program, objects int) []string {
	t.Helper()
	var all []*unstructured.Unstructured
	for i := range objects {
		all = append(all, conformance.ReadObject(t, fmt.Appendf(nil, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d, labels: {there: live}}}", i)))
	}
	world, err := snapshot.Load(engine.Documents(all...), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	reviewer := &Reviewer{Reader: world, FieldManager: "kubectl-mutate"}
	e := evaluation.New([]engine.Program{p}, &engine.World{Reader: world}, evaluation.Options{Workers: 4, Review: reviewer.Review})
	var out []string
	if err := e.Run(t.Context(), world.Source(engine.Scope{}), func(c *engine.Change) error {
		for _, i := range c.Impacts {
			out = append(out, string(i.Code)+": "+i.Text)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}
