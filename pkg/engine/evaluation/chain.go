package evaluation

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// digest identifies a state of an object.
type digest [sha256.Size]byte

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
	c.possible = slices.ContainsFunc(c.rules, func(from *triggeredRule) bool {
		return slices.ContainsFunc(c.rules, from.mayTrigger)
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

// mayTrigger reports whether a target of the rule may trigger another one, or the same.
func (r *triggeredRule) mayTrigger(next *triggeredRule) bool {
	return len(r.targets) == 0 || slices.ContainsFunc(r.targets, func(target engine.Selection) bool {
		return slices.ContainsFunc(next.wants.all, func(s engine.Selection) bool { return target.Subresource == "" && target.MayMeet(s) })
	})
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

// round is one pass over the triggers on which effects act that have changed.
type round struct {
	*chains
	changed effectIndex               // the effects that are new, or gone
	again   map[engine.ObjectKey]bool // triggers that are asked in any case, Named
	ask     func(*visit) error
	remade  []*visited // what came of it
}

func (r *round) run(ctx context.Context) error {
	r.remade = nil
	r.changed.sort()
	work := job[*visited]{
		workers: r.options.Workers,
		do:      r.visit,
		take: func(a *visited) error {
			if a != nil {
				r.remade = append(r.remade, a)
			}
			return nil
		},
	}
	for _, selections := range r.selections() {
		if err := work.run(ctx, r.Evaluation.pages(ctx, r.source, selections)); err != nil {
			return err
		}
	}
	r.changed = effectIndex{}
	for _, v := range r.remade {
		r.take(v)
	}
	if len(r.remade) > 0 {
		r.effects.sort()
		r.effects.indexTriggers()
	}
	return nil
}

// selections name the objects to read, in several listings where these take fewer requests than one.
func (r *round) selections() [][]engine.Selection {
	var subjects []engine.Selection
	known := map[engine.ObjectKey]bool{}
	for _, key := range slices.SortedFunc(maps.Keys(r.again), func(a, b engine.ObjectKey) int { return cmp.Compare(a.String(), b.String()) }) {
		known[key] = true
		subjects = append(subjects, engine.Selection{Group: key.Group, Kind: key.Kind, Namespace: key.Namespace, Name: key.Name})
	}
	for _, f := range r.changed.all {
		key := subjectKey(f.subjects).Named()
		if f.subjects.Exact() && known[key] || f.subjects.Subresource != "" {
			continue
		}
		known[key] = true
		subjects = append(subjects, r.narrow(f.subjects)...)
	}
	var each [][]engine.Selection
	exact := true
	for _, s := range subjects {
		if one := r.narrowed(s); len(one) > 0 {
			each, exact = append(each, one), exact && s.Exact()
		}
	}
	if exact && len(each) <= max(r.pages, 1) || len(each) == 0 {
		return each
	}
	var all []engine.Selection
	for _, rule := range r.rules {
		for _, s := range rule.wants.all {
			if slices.ContainsFunc(subjects, func(subject engine.Selection) bool { return r.mayBe(s, subject) }) {
				s.Labels = nil
				all = append(all, s)
			}
		}
	}
	return [][]engine.Selection{all}
}

// narrowed are the triggers among the objects of a selection. Labels are left open, since rules may
// change them.
func (r *round) narrowed(subject engine.Selection) []engine.Selection {
	var out []engine.Selection
	for _, rule := range r.rules {
		for _, s := range rule.wants.all {
			if !r.mayBe(s, subject) {
				continue
			}
			s.Group, s.Kind = subject.Group, subject.Kind
			s.Namespace, s.Name, s.Labels = subject.Namespace, subject.Name, nil
			if !slices.Contains(out, s) {
				out = append(out, s)
			}
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

// visit evaluates one trigger, and asks rules for which it has become another one. It is nil where there is
// nothing to ask.
func (r *round) visit(ctx context.Context, t engine.Target) (*visited, error) {
	if !r.chosen(&t) {
		return nil, nil // the run does not change it
	}
	key := t.Key.Named()
	place, streamed := r.places[key]
	if !r.again[key] && len(r.changed.on(t.Key, t.Object)) == 0 {
		return nil, nil
	}
	v := &visit{chains: r.chains, ctx: ctx, target: t, matching: r.triggeredBy(&t), acting: r.effects.on(t.Key, t.Object)}
	if len(v.matching) == 0 {
		return nil, nil
	}
	known := r.fed[key]
	if v.place = place; !streamed {
		v.place = -1 // it had other labels then
	}
	v.visited.fed = fed{key: key, asked: map[turn]digest{}, kept: map[turn]bool{}}
	if known != nil {
		for turn, d := range known.asked {
			v.asked[turn] = d
		}
		for turn := range known.kept {
			v.kept[turn] = true
		}
	}
	err := r.ask(v)
	out := v.visited // without the object
	return &out, err
}

// take stores what came of a visit, and adds to what has changed.
func (r *round) take(v *visited) {
	if v.place < 0 {
		v.place = r.effects.triggers
		r.effects.triggers++
	}
	r.places[v.key] = v.place
	r.fed[v.key] = &v.fed
	for _, f := range r.effects.byTrigger[v.place] {
		f.repeats = f.repeats || v.kept[f.turn]
	}
	if len(v.remade) == 0 {
		return
	}
	gone := map[turn]bool{}
	for _, m := range v.remade {
		gone[m.rule.turn] = true
		for _, f := range m.effects {
			f.trigger = v.place
			r.addInScope(f)
		}
		r.elsewhere(v, m.effects)
		r.noteSteps(v, m)
	}
	for _, f := range r.effects.byTrigger[v.place] {
		if gone[f.turn] {
			f.replaced = true
			r.elsewhere(v, []*orderedEffect{f})
		}
	}
	r.effects.all = slices.DeleteFunc(r.effects.all, func(f *orderedEffect) bool { return f.replaced })
}

// elsewhere adds the effects to what has changed, but for those on the visited object alone.
func (r *round) elsewhere(v *visited, effects []*orderedEffect) {
	for _, f := range effects {
		if !f.subjects.Exact() || subjectKey(f.subjects).Named() != v.key {
			r.changed.add(f)
		}
	}
}

// noteSteps keeps the steps of a rule that was asked again in place of those that it had.
func (r *round) noteSteps(v *visited, m *remade) {
	r.reaches.recount(m.rule.ref, len(r.effects.of(unit{m.rule.turn, v.place})) > 0, len(m.effects) > 0)
	rec := r.triggers[v.key]
	if rec == nil {
		rec = &recorder{reasons: r.options.Reasons}
	}
	rec.replace(m.rule.ref, m.rec)
	if len(rec.steps) > 0 || !rec.notMatched.IsZero() {
		r.triggers[v.key] = rec
	}
}

// replace puts the steps of a rule in the place of those that it had.
func (r *recorder) replace(rule engine.RuleRef, by *recorder) {
	steps, shown := r.steps, r.shownSteps()
	if shown == nil && by.shown != nil {
		shown = slices.Clone(steps)
	}
	r.steps, r.shown = nil, nil
	for i := range steps {
		if steps[i].Rule == rule {
			continue
		}
		r.steps = append(r.steps, steps[i])
		if shown != nil {
			r.shown = append(r.shown, shown[i])
		}
	}
	made := by.shownSteps()
	for i := range by.steps {
		if by.steps[i].Rule != rule {
			continue
		}
		r.steps = append(r.steps, by.steps[i])
		switch {
		case shown == nil:
		case made != nil:
			r.shown = append(r.shown, made[i])
		default:
			r.shown = append(r.shown, by.steps[i])
		}
	}
	r.notMatched = r.notMatched.Without(func(known engine.RuleRef) bool { return known == rule })
	if by.notMatched.Has(rule) {
		r.notMatched.Add(rule)
	}
}

// visited is what came of asking rules again because of one trigger.
type visited struct {
	fed
	place  int // of the trigger in the run; negative for one that the first pass did not see
	remade []*remade
}

// visit is one trigger on which effects act.
type visit struct {
	*chains
	visited
	ctx      context.Context // a visit does not outlive its call
	target   engine.Target
	matching []*triggeredRule // what it may trigger, in turn
	acting   []*orderedEffect // what may act on it, in order
	answers  map[asking]*triggered

	digested *unstructured.Unstructured
	digest   digest // of that
}

type asking struct {
	program int
	state   digest
}

// remade is what a rule does because of a trigger that has changed.
type remade struct {
	rule    *triggeredRule
	effects []*orderedEffect
	rec     *recorder // with the steps of its program
}

// inTurn asks the rules that see another state than they did when each stands where the rules before it
// have left the trigger.
func (v *visit) inTurn() error {
	p, err := v.walk(func(r *triggeredRule, s *state, d digest) error {
		if v.asked[r.turn] == d {
			return nil
		}
		m, err := v.remake(r, s, d)
		v.replace(m)
		return err
	})
	if err != nil {
		return err
	}
	s := p.state()
	v.final, err = v.digestOf(&s)
	return err
}

// atEnd asks the rules that saw another state than the one that the run ends with, until the trigger no longer
// changes by what it triggers itself. Rules that go on changing their own trigger are not asked again.
func (v *visit) atEnd() error {
	for i := 0; ; i++ {
		p, err := v.walk(func(*triggeredRule, *state, digest) error { return nil })
		if err != nil {
			return err
		}
		s := p.state()
		if v.final, err = v.digestOf(&s); err != nil {
			return err
		}
		changed := false
		for _, r := range v.matching {
			if v.asked[r.turn] == v.final || v.kept[r.turn] {
				continue
			}
			m, err := v.remake(r, &s, v.final)
			if err != nil {
				return err
			}
			if len(m.effects) > 0 || len(v.current(r)) == 0 {
				v.replace(m)
				changed = changed || slices.ContainsFunc(m.effects, v.actsOnItself)
			}
		}
		switch {
		case !changed:
			return nil
		case i >= maxRounds:
			v.keepOwn()
		}
	}
}

// actsOnItself reports whether an effect of the trigger acts on it.
func (v *visit) actsOnItself(f *orderedEffect) bool { return f.mayActOn(v.target.Key, v.target.Object) }

// keepOwn goes back to the effects on the trigger itself with which the visit began.
func (v *visit) keepOwn() {
	for _, r := range v.matching {
		if slices.ContainsFunc(v.current(r), v.actsOnItself) {
			v.kept[r.turn] = true
			v.replace(&remade{rule: r, effects: v.effects.of(unit{r.turn, v.place})})
			v.remade = slices.DeleteFunc(v.remade, func(m *remade) bool { return m.rule == r })
		}
	}
}

// current are the effects of a rule because of the trigger.
func (v *visit) current(r *triggeredRule) []*orderedEffect {
	for _, m := range v.remade {
		if m.rule == r {
			return m.effects
		}
	}
	return v.effects.of(unit{r.turn, v.place})
}

// replace takes effects for those that the rule had because of the trigger.
func (v *visit) replace(m *remade) {
	if m == nil {
		return
	}
	v.remade = append(slices.DeleteFunc(v.remade, func(known *remade) bool { return known.rule == m.rule }), m)
	v.acting = slices.DeleteFunc(slices.Clone(v.acting), func(f *orderedEffect) bool { return f.trigger == v.place && f.turn == m.rule.turn })
	for _, f := range m.effects {
		if v.actsOnItself(f) {
			v.acting = append(v.acting, f)
		}
	}
	slices.SortStableFunc(v.acting, rank)
}

// remake asks a rule for its effects because of a state of the trigger.
func (v *visit) remake(r *triggeredRule, s *state, d digest) (*remade, error) {
	id := asking{r.program, d}
	got := v.answers[id]
	if got == nil {
		got = &triggered{key: v.target.Key, rec: &recorder{reasons: v.options.Reasons}}
		i := slices.IndexFunc(v.programs, func(p propagation) bool { return p.order.program == r.program })
		if err := v.effectsOf(v.ctx, *s, v.programs[i], got); err != nil {
			return nil, err
		}
		if v.answers == nil {
			v.answers = map[asking]*triggered{}
		}
		v.answers[id] = got
	}
	v.asked[r.turn] = d
	m := &remade{rule: r, rec: got.rec}
	for i := range got.effects {
		if f := got.effects[i]; f.turn == r.turn {
			f.trigger = v.place
			m.effects = append(m.effects, &f)
		}
	}
	return m, nil
}

// walk evaluates the trigger with the effects as they are now. It calls before when each rule that the trigger
// may trigger has its turn.
func (v *visit) walk(before func(*triggeredRule, *state, digest) error) (*pass, error) {
	p := v.begin(v.ctx, v.target, false)
	if v.own.covers(&v.target) {
		if err := p.chain(); err != nil {
			return nil, err
		}
	}
	if len(v.asked) == 0 {
		s := p.state()
		d, err := v.digestOf(&s)
		if err != nil {
			return nil, err
		}
		for _, r := range v.matching {
			v.asked[r.turn] = d
		}
	}
	begun, next := p.target.Object, 0
	for _, r := range v.matching {
		for ; next < len(v.acting) && v.acting[next].turn.compare(r.turn) < 0; next++ {
			if err := p.effect(v.acting[next]); err != nil {
				return nil, err
			}
		}
		s := p.state()
		d, err := v.digestOf(&s)
		if err != nil {
			return nil, err
		}
		if err := before(r, &s, d); err != nil {
			return nil, err
		}
	}
	if err := p.effects(v.acting[next:]); err != nil || p.target.Object == begun {
		return p, err
	}
	return p, p.settle(v.acting, true)
}

// digestOf identifies a state of the trigger.
func (v *visit) digestOf(s *state) (digest, error) {
	if v.digested == s.target.Object {
		return v.digest, nil
	}
	content, err := json.Marshal(s.target.Object.Object)
	if err != nil {
		return digest{}, fmt.Errorf("%s: %w", v.key, err)
	}
	v.digested, v.digest = s.target.Object, sha256.Sum256(content)
	return v.digest, nil
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
