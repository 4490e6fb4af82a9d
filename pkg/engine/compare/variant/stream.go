package variant

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/openapi"
)

type stream struct {
	*Generator
	ctx   context.Context // of a single call
	seen  map[uint64]bool
	yield func(Variant) bool
	left  int
	ended bool
}

// emit yields a valid object unless it was yielded before, and reports whether to continue.
func (s *stream) emit(v Variant) bool {
	if s.ended || s.ctx.Err() != nil {
		return false
	}
	sum := fnv.New64a()
	// as a server has them
	objects := slices.Concat([]*unstructured.Unstructured{v.Object, v.OldObject}, v.Beside)
	for i, u := range objects {
		if u != nil {
			objects[i] = openapi.AsStored(u)
		}
	}
	if err := json.NewEncoder(sum).Encode([]any{
		v.Key.Subresource, objects, v.Request.User,
		v.Request.DryRun, v.Namespace, v.Alone,
	}); err != nil {
		return true
	}
	known := s.seen[sum.Sum64()]
	s.seen[sum.Sum64()] = true
	if known || !s.valid(s.ctx, v) {
		return true
	}
	s.left--
	s.ended = s.left < 0 || !s.yield(v)
	return !s.ended
}

// steps returns all single differences of a variant: of its fields, its surroundings and its companions, in
// turn.
func (s *stream) steps(base Variant) []step {
	ways := s.around(s.kind(s.ctx, base.Object.GroupVersionKind()))
	if len(base.Beside) > 0 {
		ways = append(ways, each(s.elsewhere(), together))
	}
	lists := [][]step{inTurn([][]step{s.mutations(base.Object, itself), inTurn(ways)})}
	for i, u := range base.Beside {
		lists = append(lists, append([]step{removed(i), elsewhereAlone(i)}, s.mutations(u, i)...))
	}
	return inTurn(lists)
}

// inTurn interleaves lists: the first elements of all, then the second ones.
func inTurn[T any](lists [][]T) []T {
	var out []T
	for n, more := 0, true; more; n++ {
		more = false
		for _, list := range lists {
			if n < len(list) {
				out, more = append(out, list[n]), true
			}
		}
	}
	return out
}

// mutations returns steps on the fields of the object that Variant.object returns.
func (s *stream) mutations(u *unstructured.Unstructured, beside int) []step {
	k := s.kind(s.ctx, u.GroupVersionKind())
	var out []step
	for i := range k.mutations {
		change := changeObject(beside,
			func(u *unstructured.Unstructured) bool { return k.apply(&k.mutations[i], u.Object) })
		out = append(out, change)
		if beside == itself && s.literals.words["oldObject"] {
			out = append(out, func(v *Variant) bool {
				v.OldObject = v.Object.DeepCopy()
				return change(v)
			})
		}
	}
	return out
}

// varied is a base for variants with further differences.
type varied struct {
	Variant
	steps []step
	every int // its turn comes every so many turns
	next  int
}

// The share of the limit reserved for pairs, and how many differences of a base are paired: the first ones,
// which policies name.
const (
	forPairs = 4
	paired   = 24
)

// singles yields the variants with one difference, alternating between bases, so that a small limit covers
// all of them.
func (s *stream) singles(bases []Variant) []*varied {
	var out []*varied
	for _, base := range bases {
		out = append(out, &varied{Variant: base, steps: s.steps(base), every: s.turns(s.ctx, base)})
	}
	reserve := s.left / forPairs
	for turn, more := 0, true; more && s.left > reserve; turn++ {
		more = false
		for _, one := range out {
			more = more || one.next < len(one.steps)
			if turn%one.every > 0 || one.next == len(one.steps) {
				continue
			}
			v, ok := one.after(one.steps[one.next])
			if one.next++; ok && !s.emit(v) {
				return nil
			}
		}
	}
	for _, one := range out {
		s.untried += len(one.steps) - one.next
	}
	return out
}

// pairs yields variants with two differences, chosen by the seed; with a third one if these are not enough.
func (s *stream) pairs(bases []*varied) {
	bases = slices.DeleteFunc(bases, func(one *varied) bool { return one.every > 1 || len(one.steps) == 0 })
	random := rand.New(rand.NewPCG(s.o.Seed, 1)) // repeatable
	few := 5 * s.o.Limit                         // attempts, after which few pairs are new
	for try := 0; try < 2*few && len(bases) > 0; try++ {
		base := bases[random.IntN(len(bases))]
		v, some, differences := base.Variant, base.steps[:min(len(base.steps), paired)], 2
		if try > few {
			some, differences = base.steps, 3
		}
		changed := false
		for range differences {
			if next, ok := v.after(some[random.IntN(len(some))]); ok {
				v, changed = next, true
			}
		}
		if changed && !s.emit(v) {
			return
		}
	}
}
