package patching_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/patching"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

func TestApplyOverlay(t *testing.T) {
	for _, c := range conformance.ReadPatchCases(t, "testdata/overlay.txtar") {
		t.Run(c.Name, func(t *testing.T) {
			patch := conformance.ReadMap(t, c.Parts["overlay"])
			before := runtime.DeepCopyJSON(patch)
			got, err := c.Check(t, func(live map[string]any) (map[string]any, error) { return applyOverlay(live, patch) })
			if diff := cmp.Diff(before, patch); diff != "" {
				t.Errorf("the overlay was modified:\n%s", diff)
			}
			if path, skips := c.Parts["skipped"]; skips {
				var condition *patching.ConditionError
				if !errors.As(err, &condition) || condition.Path != strings.TrimSpace(path) {
					t.Fatalf("error %v, want a condition on %s", err, path)
				}
			}
			if err != nil {
				return
			}
			if again, err := applyOverlay(got, patch); err != nil || !diff.Shared(again, got) {
				t.Errorf("the overlay changes its own result: %v\n%s", err, cmp.Diff(got, again))
			}
		})
	}
}

func applyOverlay(live, patch map[string]any) (map[string]any, error) {
	overlay, err := patching.CompileOverlay(patch)
	if err != nil {
		return live, err
	}
	return overlay.Apply(nil, live, engine.NewReasons())
}

// An overlay each of whose elements multiplies what the one before it has added
// ends with the time of its rule, before memory or the day does.
func TestApplyOverlayLimits(t *testing.T) {
	items := make([]any, 200)
	for i := range items {
		items[i] = map[string]any{"i": int64(i)}
	}
	var elements []any
	nested := any(items)
	for range 6 {
		elements = append(elements, map[string]any{"l": nested})
		nested = []any{map[string]any{"l": nested}}
	}
	live := map[string]any{"l": []any{map[string]any{"n": "x"}}}
	overlay, err := patching.CompileOverlay(map[string]any{"l": elements})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // in place of the time of a rule
	defer cancel()
	ctx, done := limit.Rule(ctx, engine.RuleRef{})
	defer done()
	if _, err := overlay.Apply(limit.ClockOf(ctx), live, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the end of the time", err)
	}
	deep := map[string]any{}
	for range 200 {
		deep = map[string]any{"a": deep}
	}
	var tooDeep *limit.Error
	if _, err := applyOverlay(live, deep); !errors.As(err, &tooDeep) {
		t.Errorf("error %v, want a limit", err)
	}
}
