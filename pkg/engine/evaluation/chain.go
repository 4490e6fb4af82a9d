package evaluation

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// maxRounds bounds how often triggers are asked again because other rules changed them. A chain
// of rules that each stand before the one that they depend on takes a round for each of them.
const maxRounds = 20

// ChainError is why rules change nothing: they go on changing what triggers them, without end.
type ChainError struct {
	Rounds   int
	Rules    []engine.RuleRef
	Triggers []engine.ObjectKey
}

// Error names the rules and the objects.
func (e *ChainError) Error() string {
	return fmt.Sprintf("reached the limit of %d rounds: %s go on changing what triggers them (%s), so they change nothing; give one of them a precondition that its change ends",
		e.Rounds, engine.Few(e.Rules), engine.Few(e.Triggers))
}

// turn is the place of a rule in a run: its program, and its place in that.
type turn struct{ program, rule int }

func (a turn) compare(b turn) int {
	return cmp.Or(cmp.Compare(a.program, b.program), cmp.Compare(a.rule, b.rule))
}

// chains follow what a run changes on objects that are triggers themselves, so that each rule sees a
// trigger as the run makes it. First in turn: the rules before it have changed the trigger when a
// rule is asked for its effects. Then in rounds, for what later rules change, until nothing does: a rule
// that names targets for the new state does so in place of those that it named before, and one that
// names none any more keeps them, because it may be its own change that ended its condition.
//
// Of the objects nothing is kept but the names of those that may be triggers, and digests of those among them
// that effects act on.
type chains struct {
	*Evaluation
	source   engine.Source
	programs []propagation
	rules    []*triggeredRule // in turn
	wants    *meeting         // what triggers them, without labels
	own      selectionIndex   // what the rules may change that match it
	possible bool             // targets may be triggers
	pages    int              // of the source
	places   map[engine.ObjectKey]int
	fed      map[engine.ObjectKey]*fed
}

// triggeredRule is a rule that changes others than it matches.
type triggeredRule struct {
	turn
	ref     engine.RuleRef
	wants   selectionIndex // what triggers it, or a superset
	targets []engine.Selection
}

// fed is a trigger on which effects act.
type fed struct {
	key   engine.ObjectKey
	asked map[turn]digest // the state for which each rule was asked for its effects
	final digest
	kept  map[turn]bool // rules that are not asked again, since they would go on changing their own trigger
}

func (f *fed) settled() bool {
	for turn, asked := range f.asked {
		if asked != f.final && !f.kept[turn] {
			return false
		}
	}
	return true
}

func newChains(e *Evaluation, src engine.Source, programs []propagation) *chains {
	c := &chains{
		Evaluation: e, source: src, programs: programs,
		places: map[engine.ObjectKey]int{}, fed: map[engine.ObjectKey]*fed{},
	}
	for _, p := range e.programs {
		if q, ok := p.(engine.Propagator); !ok || !q.Propagates() {
			c.own.all = append(c.own.all, p.Selections()...)
		}
	}
	for _, p := range programs {
		if _, ok := p.Program.(engine.Describer); !ok { // any rule may do both
			c.own.all = append(c.own.all, p.Selections()...)
		}
		for _, d := range described(p.Program) {
			if d.Existing != engine.ByTrigger {
				c.own.all = append(c.own.all, d.Matches...)
				continue
			}
			r := &triggeredRule{turn: p.order.of(d.Rule), ref: d.Rule, targets: d.Targets}
			r.wants.all = d.Matches
			c.rules = append(c.rules, r)
		}
	}
	var wants, targets []engine.Selection
	for _, r := range c.rules {
		wants = append(wants, r.wants.all...)
		targets = append(targets, r.targets...)
		c.possible = c.possible || len(r.targets) == 0
	}
	c.wants = newMeeting(withoutLabels(wants))
	c.possible = c.possible || slices.ContainsFunc(withoutLabels(targets), func(s engine.Selection) bool { return s.Subresource == "" && c.wants.meets(s) })
	return c
}

// counted counts pages.
func (c *chains) counted(pages iter.Seq2[engine.Page, error]) iter.Seq2[engine.Page, error] {
	return func(yield func(engine.Page, error) bool) {
		for page, err := range pages {
			c.pages++
			if !yield(page, err) {
				return
			}
		}
	}
}

// note keeps the place of a trigger, where targets may be triggers.
func (c *chains) note(t *triggered) {
	if c.possible && t.covered {
		c.places[t.key.Named()] = c.effects.triggers
	}
}

// triggeredBy lists the rules that an object may trigger, in turn. Labels do not count.
func (c *chains) triggeredBy(t *engine.Target) []*triggeredRule {
	var out []*triggeredRule
	for _, r := range c.rules {
		if r.wants.covers(t) {
			out = append(out, r)
		}
	}
	return out
}

// asTrigger returns an object as its own rules leave it, where there are such: that is what the rules see that
// it triggers. Covered reports whether there may be any of these.
func (c *chains) asTrigger(ctx context.Context, t engine.Target) (s state, covered bool, err error) {
	p := c.begin(ctx, t, false)
	covered = slices.ContainsFunc(c.rules, func(r *triggeredRule) bool { return r.wants.covers(&t) })
	if covered && c.own.covers(&t) && c.chosen(&t) {
		err = p.chain()
	}
	return p.state(), covered, err
}

// follow asks triggers again until no rule sees another state than the run ends with.
func (c *chains) follow(ctx context.Context) error {
	if !c.possible || len(c.effects.all) == 0 {
		return nil
	}
	c.effects.indexTriggers()
	r := round{chains: c, changed: effectIndex{all: slices.Clone(c.effects.all)}, ask: (*visit).inTurn}
	for range maxRounds {
		if err := r.run(ctx); err != nil {
			return err
		}
		if len(r.changed.all) == 0 {
			break
		}
	}
	r.ask, r.again = (*visit).atEnd, map[engine.ObjectKey]bool{}
	for key, f := range c.fed {
		if !f.settled() {
			r.again[key] = true
		}
	}
	var late []*visited // in which the members of a circle have their turn, each after the one before it
	for i := range maxRounds {
		if len(r.changed.all)+len(r.again) == 0 {
			return nil
		}
		if err := r.run(ctx); err != nil {
			return err
		}
		if r.again = nil; i >= maxRounds/2 {
			late = append(late, r.remade...)
		}
	}
	c.endless(late)
	return nil
}

// endless makes the effects fail that went on being made anew, and all that depends on them.
func (c *chains) endless(late []*visited) {
	found := &ChainError{Rounds: maxRounds}
	failed := map[unit]bool{}
	var left []*orderedEffect
	fail := func(effects []*orderedEffect) {
		for _, f := range effects {
			if !failed[f.unit()] {
				failed[f.unit()] = true
				left = append(left, f)
			}
		}
	}
	for _, v := range late {
		if slices.ContainsFunc(v.remade, func(m *remade) bool { return len(m.effects) > 0 }) && !slices.Contains(found.Triggers, v.key) {
			found.Triggers = append(found.Triggers, v.key)
		}
		for _, m := range v.remade {
			fail(m.effects)
		}
	}
	for _, f := range left {
		onOne := slices.ContainsFunc(found.Triggers, f.subjects.MatchesName)
		if onOne && !slices.Contains(found.Rules, f.Rule()) {
			found.Rules = append(found.Rules, f.Rule())
		}
	}
	for i := 0; i < len(left); i++ {
		for key := range c.fed {
			if left[i].subjects.MatchesName(key) {
				fail(c.effects.byTrigger[c.places[key]])
			}
		}
	}
	for _, f := range c.effects.all {
		if failed[f.unit()] {
			f.endless = found
		}
	}
	slices.SortFunc(found.Rules, func(a, b engine.RuleRef) int { return cmp.Compare(a.String(), b.String()) })
	slices.SortFunc(found.Triggers, func(a, b engine.ObjectKey) int { return cmp.Compare(a.String(), b.String()) })
}

// selectionIndex finds out which objects selections may select, whatever their labels.
type selectionIndex struct {
	all []engine.Selection

	mu     sync.Mutex
	byKind map[schema.GroupVersionKind][]engine.Selection
}

// covers reports whether an object may be selected. Labels do not count.
func (x *selectionIndex) covers(t *engine.Target) bool {
	if len(x.all) == 0 {
		return false
	}
	return slices.ContainsFunc(x.ofKind(t), func(s engine.Selection) bool { return s.MatchesName(t.Key) })
}

func (x *selectionIndex) ofKind(t *engine.Target) []engine.Selection {
	x.mu.Lock()
	defer x.mu.Unlock()
	kind := t.Key.GroupVersionKind()
	known, ok := x.byKind[kind]
	if !ok {
		resource := resourceName(t)
		for _, s := range x.all {
			if s.MatchesKind(t.Key) && s.MatchesResource(resource) {
				known = append(known, s)
			}
		}
		if x.byKind == nil {
			x.byKind = map[schema.GroupVersionKind][]engine.Selection{}
		}
		x.byKind[kind] = known
	}
	return known
}
