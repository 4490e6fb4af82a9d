package variant

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// stream yields variants.
type stream struct {
	generator *Generator
	ctx       context.Context // of one call
	seen      map[uint64]bool
	yield     func(Variant) bool
	left      int
	ended     bool
}

// emit yields an object, unless it was there before or is not valid, and reports whether to go on.
func (s *stream) emit(v Variant) bool {
	if s.ended || s.ctx.Err() != nil {
		return false
	}
	v.Object = s.generator.stripped(s.ctx, v.Object)
	beside := make([]*unstructured.Unstructured, len(v.Beside))
	for i, u := range v.Beside {
		beside[i] = s.generator.stripped(s.ctx, u)
	}
	v.Beside = beside
	if v.OldObject != nil {
		v.OldObject = s.generator.stripped(s.ctx, v.OldObject)
	}
	sum := fnv.New64a()
	text, err := json.Marshal([]any{v.Key.Subresource, v.Object, v.OldObject, v.Request.User, v.Request.DryRun, v.Namespace, v.Beside, v.Alone})
	if err != nil {
		return true
	}
	sum.Write(text)
	if s.seen[sum.Sum64()] {
		return true
	}
	s.seen[sum.Sum64()] = true
	if !s.generator.valid(s.ctx, v) {
		return true
	}
	s.left--
	if s.left < 0 || !s.yield(v) {
		s.ended = true
	}
	return !s.ended
}

// step is one difference: of the object, or of what is around it.
type step func(Variant) (Variant, bool)

// steps are all single differences of a variant, those of its fields, of what is around it, and of the objects beside it in turn.
func (s *stream) steps(base Variant) []step {
	ways := s.generator.around(s.generator.kind(s.ctx, base.Object.GroupVersionKind()))
	if len(base.Beside) > 0 {
		ways = append(ways, each(s.generator.elsewhere(), together))
	}
	around := inTurn(ways)
	lists := [][]step{inTurn([][]step{s.mutations(base.Object, -1), around})}
	for i, u := range base.Beside {
		lists = append(lists, slices.Concat([]step{removed(i)}, s.generator.renamed(i), s.mutations(u, i), emptied(u, i)))
	}
	return inTurn(lists)
}

// inTurn joins lists: the first elements of all, then the second ones.
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

// mutations are the differences in the fields of an object: the one with an index beside a variant, or its own for -1.
func (s *stream) mutations(u *unstructured.Unstructured, beside int) []step {
	k := s.generator.kind(s.ctx, u.GroupVersionKind())
	mutations := k.mutations
	if k.typ.Schema == nil || len(mutations) == 0 {
		sites := s.generator.vocabulary.sitesOf(u.Object)
		for i := range sites {
			mutations = append(mutations, s.generator.vocabulary.mutations(&sites[i])...)
		}
	}
	out := make([]step, 0, len(mutations))
	for i := range mutations {
		m := &mutations[i]
		change := changing(beside, func(u *unstructured.Unstructured) bool { return k.apply(m, u) })
		out = append(out, change)
		if beside < 0 && s.generator.vocabulary.words["oldObject"] {
			out = append(out, func(v Variant) (Variant, bool) {
				old := v.Object
				v, ok := change(v)
				v.OldObject = old
				return v, ok
			})
		}
	}
	return out
}

// apply changes a copy of an object, and adds what the structs need that it makes for that.
func (k *kind) apply(m *mutation, u *unstructured.Unstructured) bool {
	changed := m.apply(u.Object)
	if changed && m.value != nil && k.typ.Schema != nil {
		k.completed(u.Object, k.typ.Ref, nil)
	}
	return changed
}

// changing is a step that changes a copy of an object: the one with an index beside the variant, or its own for -1.
func changing(beside int, do func(*unstructured.Unstructured) bool) step {
	return func(v Variant) (Variant, bool) {
		if beside < 0 {
			object := v.Object.DeepCopy()
			ok := do(object)
			return v.with(object), ok
		}
		if beside >= len(v.Beside) { // one was removed
			return v, false
		}
		object := v.Beside[beside].DeepCopy()
		v.Beside = slices.Clone(v.Beside)
		v.Beside[beside] = object
		return v, do(object)
	}
}

// varied is a variant from which others with one difference are derived.
type varied struct {
	Variant
	steps []step
	every int // it gets a turn in every so many
	next  int
}

// How much rarer the turns are of a base on which rules do what they do on one before, and of one of a kind that no rule selects.
const (
	repeated = 6
	stranger = 40
)

// varied are the bases, those rarer on which rules do nothing new.
func (s *stream) varied(bases []Variant) []*varied {
	g := s.generator
	var out []*varied
	for _, base := range bases {
		one := &varied{Variant: base, steps: s.steps(base), every: 1}
		if g.o.Try != nil {
			did := g.reaction(base, g.o.Try(s.ctx, base).Did)
			if g.did[did] && len(base.Beside) == 0 { // with what is beside it a rule may do something only if that differs
				one.every = repeated
			}
			g.did[did] = did != ""
		}
		if !g.isSelected(base) {
			one.every = stranger
		}
		out = append(out, one)
	}
	g.learned, g.further = nil, 0 // what the bases show
	return out
}

// single yields the next variant with one difference, and reports whether to go on.
func (s *stream) single(of *varied) bool {
	if of.next == len(of.steps) {
		return true
	}
	v, ok := of.steps[of.next](of.Variant)
	of.next++
	return !ok || s.emit(v)
}

// singles yields the variants with one difference, those of all bases in turn, so that a small budget is spent on all
// of them. Between two of these is one of those that are learned meanwhile.
func (s *stream) singles(bases []Variant) []*varied {
	g, own := s.generator, s.varied(bases)
	var further []*varied
	turns := 0
	reserve := s.left / 4 //nolint:mnd // for combined differences
	for turn, more := 0, true; more; turn++ {
		more = false
		for _, one := range append(slices.Clip(own), further...) {
			more = more || one.next < len(one.steps)
		}
		for _, one := range own {
			if turn%one.every > 0 {
				continue
			}
			for ; len(g.learned) > 0; g.learned = g.learned[1:] {
				for _, v := range append([]Variant{g.learned[0]}, g.accompanied(s.ctx, g.learned[0])...) {
					further = append(further, &varied{Variant: v, steps: s.steps(v), every: repeated})
				}
			}
			if !s.single(one) {
				return own
			}
			if turns++; len(further) > 0 && !s.single(further[turns%len(further)]) {
				return own
			}
		}
		if s.left <= reserve {
			break
		}
	}
	all := append(own, further...)
	for _, one := range all {
		g.untried += len(one.steps) - one.next
	}
	return all
}

// The bounds of what is crossed.
const (
	maxCrossedBases = 3
	maxCrossed      = 8
)

// crossed yields variants with each name in each namespace: policies ask for these together.
func (s *stream) crossed(bases []*varied) {
	g := s.generator
	names, namespaces := g.names(), each(g.namespaces, in)
	left := maxCrossedBases
	for _, base := range bases {
		if base.every > 1 || left == 0 || base.Object.GetNamespace() == "" {
			continue
		}
		left--
		prefixes := g.prefixes(g.kind(s.ctx, base.Object.GroupVersionKind()))
		for _, way := range append(each(names[:min(len(names), maxCrossed)], named), each(prefixes, unnamed)...) {
			for _, move := range namespaces[:min(len(namespaces), maxCrossed)] {
				v, _ := move(base.Variant)
				if v, ok := way(v); ok && !s.emit(v) {
					return
				}
			}
		}
	}
}

// combined yields variants with several differences, which the seed chooses.
func (s *stream) combined(bases []*varied) {
	if len(bases) == 0 {
		return
	}
	random := rand.New(rand.NewPCG(s.generator.o.Seed, 1)) //nolint:gosec // it has to be repeatable
	for tries := 10 * s.generator.o.Limit; tries > 0; tries-- {
		base := bases[random.IntN(len(bases))]
		if len(base.steps) == 0 || random.IntN(base.every) > 0 {
			continue
		}
		t := base.Variant
		for range 2 + random.IntN(3) {
			if next, ok := base.steps[random.IntN(len(base.steps))](t); ok {
				t = next
			}
		}
		if !s.emit(t) {
			return
		}
	}
}
