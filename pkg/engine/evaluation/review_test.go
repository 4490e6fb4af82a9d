package evaluation_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
)

// review returns Options.Review of a function.
func review(of func(context.Context, *evaluation.Evaluation, *engine.Change) error) func(*engine.Change) func(context.Context, *evaluation.Evaluation) error {
	return func(c *engine.Change) func(context.Context, *evaluation.Evaluation) error {
		return func(ctx context.Context, e *evaluation.Evaluation) error { return of(ctx, e, c) }
	}
}

func TestReviewOfWrittenObjects(t *testing.T) {
	w := world{configMap("a", "k", "old"), configMap("b", "k", "new"), configMap("c")}
	var reviewed atomic.Int64
	e := evaluation.New([]engine.Program{rule{"p", "k", constant("new")}}, &engine.World{Reader: w}, evaluation.Options{
		Review: review(func(ctx context.Context, e *evaluation.Evaluation, c *engine.Change) error {
			reviewed.Add(1)
			c.Impacts = append(c.Impacts, engine.Impact{Code: engine.ImpactRollout, Pods: 2}, engine.Impact{Code: engine.ImpactManaged})
			second, err := e.Evaluate(ctx, c.Target.With(c.After), c.Scoped)
			if err == nil && second.Changed() {
				t.Errorf("%s: the result changes again", c.Subject)
			}
			return err
		}),
	})
	s := evaluation.NewSummary(nil)
	if err := e.Run(t.Context(), w, func(c *engine.Change) error {
		s.Add(c)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if reviewed.Load() != 2 { // not b, which is as it should be
		t.Errorf("%d objects reviewed", reviewed.Load())
	}
	if d := cmp.Diff(evaluation.Restarts{ManagedWorkloads: 2, ManagedPods: 4}, s.Restarts); d != "" || s.Warnings != 4 {
		t.Errorf("%d warnings; restarts (-want +got):\n%s", s.Warnings, d)
	}
}
