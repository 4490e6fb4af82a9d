package evaluation

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// numbered is a page of targets whose generations are their places in it.
type numbered int

func (p numbered) Len() int { return int(p) }

func (p numbered) Target(i int) (engine.Target, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGeneration(int64(i))
	return engine.Target{Object: u}, nil
}

// Large results of a page do not wait for all others of it, and all are taken in their order.
func TestLargeResultsAreTakenEarly(t *testing.T) {
	const workers, objects = 3, 50
	var made atomic.Int64
	var noted, taken []int
	work := job[int]{
		workers: workers,
		do: func(_ context.Context, t engine.Target) (int, error) {
			made.Add(1)
			return int(t.Object.GetGeneration()), nil
		},
		weight: func(int) int { return maxWeight / 2 },
		note:   func(i int) { noted = append(noted, i) },
		review: func(context.Context, int) error { return nil },
		take: func(i int) error {
			if waiting := int(made.Load()) - len(taken); waiting > 1+workers {
				t.Errorf("%d results wait before %d is taken", waiting, i)
			}
			taken = append(taken, i)
			return nil
		},
	}
	pages := iter.Seq2[engine.Page, error](func(yield func(engine.Page, error) bool) { yield(numbered(objects), nil) })
	if err := work.run(t.Context(), pages); err != nil {
		t.Fatal(err)
	}
	if len(taken) != objects || !slices.IsSorted(taken) || !slices.Equal(noted, taken) {
		t.Errorf("noted %v, taken %v", noted, taken)
	}
}

// What a change weighs grows with its fields, and with the texts that these hold.
func TestWeight(t *testing.T) {
	text := strings.Repeat("z", 1<<20)
	small := engine.FieldChange{From: int64(1), To: int64(2)}
	large := engine.FieldChange{To: map[string]any{"a": []any{text}}}
	for name, c := range map[string]struct {
		change *engine.Change
		least  int
	}{
		"100,000 fields":   {&engine.Change{Fields: slices.Repeat([]engine.FieldChange{small}, 100_000)}, 30 << 20},
		"32 long texts":    {&engine.Change{Fields: slices.Repeat([]engine.FieldChange{large}, 32)}, 32 << 20},
		"those of a step":  {&engine.Change{Steps: []engine.Step{{Fields: slices.Repeat([]engine.FieldChange{large}, 32)}}}, 32 << 20},
		"what was removed": {&engine.Change{Fields: slices.Repeat([]engine.FieldChange{{From: text}}, 32)}, 32 << 20},
	} {
		if got := weight(c.change); got < c.least || got > c.least+c.least/8 {
			t.Errorf("%s: %d bytes, want some %d", name, got, c.least)
		}
	}
}
