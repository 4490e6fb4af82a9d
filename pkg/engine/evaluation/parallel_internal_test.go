package evaluation

import (
	"context"
	"iter"
	"slices"
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

// The results of a page are taken in its order.
func TestResultsAreTakenInOrder(t *testing.T) {
	const objects = 50
	var noted, taken []int
	work := job[int]{
		workers: 3,
		do:      func(_ context.Context, t engine.Target) (int, error) { return int(t.Object.GetGeneration()), nil },
		note:    func(i int) { noted = append(noted, i) },
		review:  func(context.Context, int) error { return nil },
		take:    func(i int) error { taken = append(taken, i); return nil },
	}
	pages := iter.Seq2[engine.Page, error](func(yield func(engine.Page, error) bool) { yield(numbered(objects), nil) })
	if err := work.run(t.Context(), pages); err != nil {
		t.Fatal(err)
	}
	if len(taken) != objects || !slices.IsSorted(taken) || !slices.Equal(noted, taken) {
		t.Errorf("noted %v, taken %v", noted, taken)
	}
}
