package evaluation

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// maxVisits bounds how often a trigger is looked at once more because other rules have changed it, and how often what it triggers
// itself may change it.
const maxVisits = 5

// turn is the place of a rule in a run: its program, and its place in that.
type turn struct{ program, rule int }

func (a turn) compare(b turn) int {
	return cmp.Or(cmp.Compare(a.program, b.program), cmp.Compare(a.rule, b.rule))
}

// chains follow what a run changes on objects that are triggers themselves, so that each rule sees a
// trigger as the run makes it. First in turn: the rules before it have changed the trigger when a
// rule is asked for its effects. Then at the end, until nothing changes: a rule
// that names targets for the new state does so in place of those that it named before, and one that
// names none any more keeps them, because it may be its own change that ended its condition.
type chains struct {
	*Evaluation
	source   engine.Source
	programs []propagation
	rules    []*triggeredRule   // in turn
	wants    []engine.Selection // what triggers them, without labels
	own      selectionIndex     // what the rules may change that match it
	possible bool               // targets may be triggers
	pages    int                // of the source
	places   map[engine.ObjectKey]int
	fed      map[engine.ObjectKey]*fed
	read     map[engine.Selection]bool // subjects among which triggers were looked for
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
	key      engine.ObjectKey
	target   engine.Target
	place    int                                 // of the trigger in the run
	matching []*triggeredRule                    // what it may trigger, in turn
	asked    map[turn]*unstructured.Unstructured // the state for which each rule was asked for its effects
	final    *unstructured.Unstructured
	kept     map[turn]bool // rules that are not asked again, since they would go on changing their own trigger
	visits   int           // beyond maxVisits, it is left alone
}

func (f *fed) settled() bool {
	for turn, asked := range f.asked {
		if !f.kept[turn] && !same(asked, f.final) {
			return false
		}
	}
	return true
}

// same reports whether two states of an object are alike.
func same(a, b *unstructured.Unstructured) bool { return a == b || diff.Same(a.Object, b.Object) }

func newChains(e *Evaluation, src engine.Source, programs []propagation) *chains {
	c := &chains{
		Evaluation: e, source: src, programs: programs,
		places: map[engine.ObjectKey]int{}, fed: map[engine.ObjectKey]*fed{}, read: map[engine.Selection]bool{},
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
	c.wants = withoutLabels(wants)
	c.possible = c.possible || slices.ContainsFunc(withoutLabels(targets), func(s engine.Selection) bool {
		return s.Subresource == "" && slices.ContainsFunc(c.wants, s.MayMeet)
	})
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
	endless := false
	next, err := c.fedBy(ctx, c.effects.all)
	for err == nil && len(next) > 0 { // a rule depends on those before it alone, so that this ends
		next, err = c.round(ctx, next, (*visit).inTurn)
	}
	next = slices.DeleteFunc(c.inOrder(), (*fed).settled)
	for err == nil && len(next) > 0 {
		next = slices.DeleteFunc(next, func(f *fed) bool {
			f.visits++
			endless = endless || f.visits > maxVisits
			return f.visits > maxVisits
		})
		next, err = c.round(ctx, next, (*visit).atEnd)
	}
	if endless {
		c.fail()
	}
	return err
}

// inOrder are the triggers on which effects act, in the order of the run.
func (c *chains) inOrder() []*fed {
	return slices.SortedFunc(maps.Values(c.fed), func(a, b *fed) int { return cmp.Compare(a.place, b.place) })
}

// round visits triggers, and returns those on which effects act that are new, or gone.
func (c *chains) round(ctx context.Context, triggers []*fed, ask func(*visit) error) ([]*fed, error) {
	visits := make([]*visit, len(triggers))
	err := sideBySide(ctx, c.options.Workers, len(triggers), func(ctx context.Context, i int) error {
		f := triggers[i]
		visits[i] = &visit{chains: c, fed: f, ctx: ctx, acting: c.effects.on(f.key, f.target.Object)}
		return ask(visits[i])
	})
	if err != nil {
		return nil, err
	}
	var changed []*orderedEffect
	for _, v := range visits {
		changed = append(changed, c.take(v)...)
	}
	c.effects.sort()
	c.effects.indexTriggers()
	return c.fedBy(ctx, changed)
}

// take stores what came of a visit, and returns the effects that are new, or gone, but for those on the trigger itself alone.
func (c *chains) take(v *visit) (changed []*orderedEffect) {
	elsewhere := func(f *orderedEffect) {
		if !f.subjects.Exact() || subjectKey(f.subjects).Named() != v.key {
			changed = append(changed, f)
		}
	}
	gone := map[*orderedEffect]bool{}
	for _, m := range v.remade {
		had := c.effects.of(unit{m.rule.turn, v.place})
		c.reaches.recount(m.rule.ref, len(had) > 0, len(m.effects) > 0)
		for _, f := range had {
			gone[f] = true
			elsewhere(f)
		}
		for _, f := range m.effects {
			c.addInScope(f)
			elsewhere(f)
		}
		c.noteSteps(v.key, m)
	}
	for _, f := range c.effects.byTrigger[v.place] {
		f.repeats = f.repeats || v.kept[f.turn]
	}
	if len(gone) > 0 {
		c.effects.all = slices.DeleteFunc(c.effects.all, func(f *orderedEffect) bool { return gone[f] })
	}
	return changed
}

// noteSteps keeps the steps of a rule that was asked again in place of those that it had.
func (c *chains) noteSteps(key engine.ObjectKey, m *remade) {
	rec := c.triggers[key]
	if rec == nil {
		rec = &recorder{reasons: c.options.Reasons}
	}
	rec.replace(m.rule.ref, m.rec)
	if len(rec.steps) > 0 || len(rec.notMatched) > 0 {
		c.triggers[key] = rec
	}
}

// fedBy returns the triggers on which some effects act. Those that are new among them are read.
func (c *chains) fedBy(ctx context.Context, effects []*orderedEffect) ([]*fed, error) {
	acting := effectIndex{all: slices.Clone(effects)}
	acting.sort()
	work := job[*fed]{
		workers: c.options.Workers,
		do: func(_ context.Context, t engine.Target) (*fed, error) {
			f := &fed{key: t.Key.Named(), target: t, place: -1, asked: map[turn]*unstructured.Unstructured{}, kept: map[turn]bool{}}
			if c.chosen(&t) && len(acting.on(t.Key, t.Object)) > 0 { // else the run does not change it
				f.matching = c.triggeredBy(&t)
			}
			return f, nil
		},
		take: func(f *fed) error {
			if len(f.matching) > 0 && c.fed[f.key] == nil {
				c.keepFed(f)
			}
			return nil
		},
	}
	for _, selections := range c.unread(effects) {
		if err := work.run(ctx, c.Evaluation.pages(ctx, c.source, selections)); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(c.inOrder(), func(f *fed) bool { return len(acting.on(f.key, f.target.Object)) == 0 }), nil
}

// keepFed keeps a trigger. One that the first pass did not see had other labels then.
func (c *chains) keepFed(f *fed) {
	var streamed bool
	if f.place, streamed = c.places[f.key]; !streamed {
		f.place = c.effects.triggers
		c.effects.triggers++
	}
	c.fed[f.key] = f
}

// unread are selections of the triggers on which effects may act, as far as they were not read before: one for each, in several
// listings, where these take fewer requests than one.
func (c *chains) unread(effects []*orderedEffect) [][]engine.Selection {
	var exact, kinds []engine.Selection
	listed := false
	for _, f := range effects {
		s := f.subjects
		if s.Labels = nil; s.Subresource != "" || c.read[s] {
			continue
		}
		c.read[s] = true
		for _, s := range c.narrow(s) {
			listed = listed || !s.Exact()
			exact = append(exact, s)
			kinds = append(kinds, engine.Selection{Group: s.Group, Version: s.Version, Kind: s.Kind})
		}
	}
	if !listed && len(exact) <= max(c.pages, 1) {
		return c.narrowed(exact)
	}
	kinds = withoutLabels(kinds)
	return [][]engine.Selection{slices.DeleteFunc(slices.Clone(c.wants), func(s engine.Selection) bool {
		return !slices.ContainsFunc(kinds, func(kind engine.Selection) bool { return c.mayBe(s, kind) })
	})}
}

// narrowed are the triggers among each of some objects. Labels are left open, since rules may change them.
func (c *chains) narrowed(objects []engine.Selection) (out [][]engine.Selection) {
	for _, o := range objects {
		var one []engine.Selection
		for _, s := range c.wants {
			if c.mayBe(s, o) {
				s.Group, s.Kind, s.Namespace, s.Name = o.Group, o.Kind, o.Namespace, o.Name
				one = append(one, s)
			}
		}
		if len(one) > 0 {
			out = append(out, withoutLabels(one))
		}
	}
	return out
}

// mayBe reports whether what a rule matches may be the subject of an effect.
func (c *chains) mayBe(match, subject engine.Selection) bool {
	if !match.MayMeet(subject) {
		return false
	}
	if match.Resource == "" || c.world.Mapper == nil || !subject.ExactKind() {
		return true
	}
	mapping, err := c.world.Mapper.RESTMapping(subjectKey(subject).GroupKind)
	return err == nil && match.MatchesResource(mapping.Resource.Resource)
}

// withoutLabels are the selections without their labels, each once.
func withoutLabels(all []engine.Selection) []engine.Selection {
	var out engine.SelectionSet
	for _, s := range all {
		s.Labels = nil
		out.Add(s)
	}
	return out.All
}

// fail makes the effects fail of the triggers that go on changing, which were visited as often as any, and all that depends on them.
func (c *chains) fail() {
	var rules []engine.RuleRef
	var triggers []engine.ObjectKey
	failed := map[*orderedEffect]bool{}
	var left []*orderedEffect
	fail := func(f *fed) {
		for _, f := range c.effects.byTrigger[f.place] {
			if !failed[f] {
				failed[f] = true
				left = append(left, f)
			}
		}
	}
	for _, f := range c.inOrder() {
		if f.visits >= maxVisits {
			triggers = append(triggers, f.key)
			fail(f)
		}
	}
	for _, f := range left {
		onOne := slices.ContainsFunc(triggers, f.subjects.MatchesName)
		if onOne && !slices.Contains(rules, f.Rule()) {
			rules = append(rules, f.Rule())
		}
	}
	for i := 0; i < len(left); i++ {
		for _, f := range c.fed {
			if left[i].mayActOn(f.key, f.target.Object) {
				fail(f)
			}
		}
	}
	slices.SortFunc(rules, func(a, b engine.RuleRef) int { return cmp.Compare(a.String(), b.String()) })
	slices.SortFunc(triggers, func(a, b engine.ObjectKey) int { return cmp.Compare(a.String(), b.String()) })
	err := fmt.Errorf("reached the limit of %d rounds: %s go on changing what triggers them (%s), so they change nothing; give one of them a precondition that its change ends",
		maxVisits, engine.Few(rules), engine.Few(triggers))
	for _, f := range left {
		f.endless = err
	}
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
