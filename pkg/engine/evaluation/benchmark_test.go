package evaluation_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/internal/randomobject"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

// BenchmarkRun evaluates a thousand Deployments: the loop alone, with programs that cost
// next to nothing and copy no more than they change.
func BenchmarkRun(b *testing.B) {
	objects := make([]*unstructured.Unstructured, 1000)
	for i := range objects {
		objects[i] = &unstructured.Unstructured{Object: randomobject.New(uint64(i)).Deployment()}
		objects[i].SetName(fmt.Sprint("d", i))
	}
	s, err := snapshot.Load(engine.Documents(objects...), snapshot.Options{})
	if err != nil {
		b.Fatal(err)
	}
	source := s.Source(engine.Scope{})
	for name, programs := range map[string][]engine.Program{
		"unchanged": {labeler{}, labeler{}},
		"changed":   {labeler{"first"}, labeler{"second"}},
	} {
		b.Run(name, func(b *testing.B) {
			run := func() {
				e := evaluation.New(programs, &engine.World{Reader: s}, evaluation.Options{Workers: 1})
				seen := 0
				if err := e.Run(b.Context(), source, func(*engine.Change) error { seen++; return nil }); err != nil || seen != len(objects) {
					b.Fatal(seen, err)
				}
			}
			run() // reads the schemas
			b.ReportAllocs()
			for b.Loop() {
				run()
			}
		})
	}
}

// BenchmarkChains has each trigger change a target of its own, which may be a trigger too: twice the triggers take twice
// the time.
func BenchmarkChains(b *testing.B) {
	for _, n := range []int{1000, 2000, 4000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var objects []*unstructured.Unstructured
			for i := range n {
				objects = append(objects, configMap(fmt.Sprint("trigger", i)), configMap(fmt.Sprint("target", i)))
			}
			s, err := snapshot.Load(engine.Documents(objects...), snapshot.Options{})
			if err != nil {
				b.Fatal(err)
			}
			own := copier{appender{rule: rule{name: "copies", key: "k"}}}
			b.ReportAllocs()
			for b.Loop() {
				e := evaluation.New([]engine.Program{own}, &engine.World{Reader: s}, evaluation.Options{Workers: 1})
				if err := e.Prepare(b.Context(), s.Source(engine.Scope{ClusterScoped: true})); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// copier is an appender of which each trigger has its own target.
type copier struct{ appender }

func (c copier) Effects(ctx context.Context, t engine.Target, w *engine.World, s engine.Sink) ([]engine.Effect, error) {
	c.target = engine.Selection{Version: "v1", Kind: "ConfigMap", Namespace: "default", Name: "target" + strings.TrimPrefix(t.Key.Name, "trigger")}
	return c.appender.Effects(ctx, t, w, s)
}

// labeler sets one label of Deployments and of their Pods; none if it has no name.
type labeler struct{ label string }

func (l labeler) Rules() []engine.RuleRef { return []engine.RuleRef{{Policy: l.label}} }
func (l labeler) Selections() []engine.Selection {
	return []engine.Selection{{Group: "apps", Kind: "Deployment"}}
}

func (l labeler) Evaluate(_ context.Context, t engine.Target, _ *engine.World, s engine.Sink) (*unstructured.Unstructured, error) {
	step := engine.Step{Rule: l.Rules()[0], Outcome: engine.NotMatched}
	if l.label == "" || t.Request.Reinvocation {
		s.Step(step)
		return t.Object, nil
	}
	object := l.set(t.Object.Object, "metadata", "labels")
	step.Outcome, step.After = engine.Changed, &unstructured.Unstructured{Object: l.set(object, "spec", "template", "metadata", "labels")}
	s.Step(step)
	return step.After, nil
}

// set copies the maps on the way to the label.
func (l labeler) set(object map[string]any, way ...string) map[string]any {
	out := maps.Clone(object)
	if len(way) == 0 {
		out[l.label] = "x"
		return out
	}
	below, _ := object[way[0]].(map[string]any)
	out[way[0]] = l.set(below, way[1:]...)
	return out
}
