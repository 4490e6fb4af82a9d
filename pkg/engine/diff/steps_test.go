package diff_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// What Steps remembers of a list does not change what it finds, whether or not its elements have names of their own.
func TestStepsOfLists(t *testing.T) {
	elements := []any{map[string]any{"name": "a"}, map[string]any{"name": "b"}, map[string]any{"name": "c"}, map[string]any{"name": "b", "value": "x"}, map[string]any{}, "a"}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		d := &engine.Draft{}
		steps := diff.NewSteps(d)
		state := []any{elements[0]}
		for range 20 {
			next := slices.Clone(state)
			i, element := r.IntN(len(state)), elements[r.IntN(len(elements))]
			switch r.IntN(5) {
			case 0:
				next = d.Append(state, element)
			case 1:
				next = d.Prepend(state, element)
			case 2:
				next[i] = element
			default:
				if len(state) > 1 {
					next = slices.Delete(next, i, i+1)
				}
			}
			copied := diff.Compare(map[string]any{"list": slices.Clone(state)}, map[string]any{"list": slices.Clone(next)}, diff.Type{})
			step := steps.Compare(map[string]any{"list": state}, map[string]any{"list": next}, diff.Type{}, 0)
			if d := cmp.Diff(copied, step, cmpopts.EquateEmpty()); d != "" {
				t.Fatalf("seed %d, from %v to %v, by itself (-) and as a step (+): %s", seed, state, next, d)
			}
			state = next
		}
	}
}
