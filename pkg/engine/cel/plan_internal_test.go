package cel

import (
	"fmt"
	"testing"

	"github.com/google/cel-go/common/types"
)

// Of an expression that was not evaluated, no program is kept, of which each takes 40 KB; nor of more than maxPlans.
func TestProgramsAreKeptOfWhatIsEvaluated(t *testing.T) {
	e, err := NewEnvironment(Options{})
	if err != nil {
		t.Fatal(err)
	}
	var all []*Expression
	for i := range maxPlans + 100 {
		x, err := e.NewScope().Condition(fmt.Sprintf("object.metadata.name == 'web-%d'", i))
		if err != nil {
			t.Fatal(err)
		}
		if len(x.plan.checked) > 500 {
			t.Fatalf("an expression of %d bytes is kept in %d", len(x.text), len(x.plan.checked))
		}
		all = append(all, x)
	}
	if kept := keptOf(all); kept != 0 {
		t.Errorf("%d programs are kept before any is evaluated", kept)
	}
	in := Input{Object: map[string]any{"metadata": map[string]any{"name": fmt.Sprintf("web-%d", maxPlans+50)}}}
	for range 2 {
		for i, x := range all {
			if v, err := e.NewScope().Evaluate(t.Context(), in, MatchBudget()).Value(x); err != nil || v != types.Bool(i == maxPlans+50) {
				t.Fatalf("%s: %v, %v", x.text, v, err)
			}
		}
	}
	if kept := keptOf(all); kept != maxPlans {
		t.Errorf("%d programs are kept, want %d", kept, maxPlans)
	}
}

func keptOf(all []*Expression) (kept int) {
	for _, x := range all {
		if x.plan.kept.Load() != nil {
			kept++
		}
	}
	return kept
}
