package evaluation

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// maxVisits bounds how often a trigger is visited again because other rules have changed it, and how often
// the rules that it triggers may change it.
const maxVisits = 5

// turn is the place of a rule in a run: its program, and its place in that.
type turn struct{ program, rule int }

func (a turn) compare(b turn) int {
	return cmp.Or(cmp.Compare(a.program, b.program), cmp.Compare(a.rule, b.rule))
}

// chains follow the changes of a run to its triggers, so that each rule sees a trigger as the run makes it.
// First in turn: when a rule is asked for its effects, the rules before it have changed the trigger. Then at
// the end, until nothing changes: if a rule names targets for the new state, they replace its earlier ones;
// if it names none, it keeps them, because its own change may have ended its condition.
type chains struct {
	*Evaluation
	source   engine.Source
	programs []propagation
	rules    []*triggeredRule         // in turn
	wants    []engine.Selection       // their triggers, without labels
	own      []engine.Selection       // objects that rules matching them may change
	possible bool                     // targets may be triggers
	places   map[engine.ObjectKey]int // of triggers, where targets may be triggers
	first    map[int][]*orderedEffect // of the first pass, by the places of their triggers
	fed      map[engine.ObjectKey]*fed
	read     map[engine.Selection]bool // subjects already searched for triggers
	news     []*orderedEffect          // of a round: new or removed, except effects only on their own trigger
	answer   answer                    // the last one
}

// triggeredRule is a rule that changes objects other than its matches.
type triggeredRule struct {
	turn
	ref     engine.RuleRef
	wants   []engine.Selection // its triggers, or a superset
	targets []engine.Selection
}

// answer is a program's answer to a question: what does this state trigger?
type answer struct {
	program int
	state   *unstructured.Unstructured
	*triggered
}

// fed is a trigger on which effects act.
type fed struct {
	key      engine.ObjectKey
	target   engine.Target
	place    int              // of the trigger in the run
	matching []*triggeredRule // rules that it may trigger, in turn
	effects  map[turn][]*orderedEffect
	asked    map[turn]*unstructured.Unstructured // the state for which each rule was asked for its effects
	final    *unstructured.Unstructured
	kept     map[turn]bool // rules that are not asked again, since they would go on changing their own trigger
	visits   int           // beyond maxVisits, it is not visited
}

func (f *fed) settled() bool {
	for turn, asked := range f.asked {
		if !f.kept[turn] && !same(asked, f.final) {
			return false
		}
	}
	return true
}

// actsOnItself reports whether an effect of the trigger may act on the trigger.
func (f *fed) actsOnItself(e *orderedEffect) bool { return e.mayActOn(f.target.Key, f.target.Object) }

// same reports whether two states of an object are alike.
func same(a, b *unstructured.Unstructured) bool { return a == b || diff.Same(a.Object, b.Object) }

func newChains(e *Evaluation, src engine.Source, programs []propagation) *chains {
	c := &chains{
		Evaluation: e, source: src, programs: programs,
		places: map[engine.ObjectKey]int{}, first: map[int][]*orderedEffect{}, fed: map[engine.ObjectKey]*fed{},
		read: map[engine.Selection]bool{},
	}
	for _, p := range e.programs {
		if q, ok := p.(engine.Propagator); !ok || !q.Propagates() {
			c.own = append(c.own, p.Selections()...)
		}
	}
	for _, p := range programs {
		for _, d := range p.Describe() {
			if d.Existing != engine.ByTrigger {
				c.own = append(c.own, d.Matches...)
				continue
			}
			c.rules = append(c.rules,
				&triggeredRule{turn: p.turn(d.Rule), ref: d.Rule, wants: d.Matches, targets: d.Targets})
		}
	}
	var wants, targets []engine.Selection
	for _, r := range c.rules {
		wants = append(wants, r.wants...)
		targets = append(targets, r.targets...)
		c.possible = c.possible || len(r.targets) == 0
	}
	c.wants = withoutLabels(wants)
	c.possible = c.possible || slices.ContainsFunc(withoutLabels(targets), func(s engine.Selection) bool {
		return s.Subresource == "" && slices.ContainsFunc(c.wants, s.MayMeet)
	})
	return c
}

// triggeredBy lists the rules that an object may trigger, in turn. Labels do not count.
func (c *chains) triggeredBy(t *engine.Target) []*triggeredRule {
	var out []*triggeredRule
	for _, r := range c.rules {
		if covers(r.wants, t) {
			out = append(out, r)
		}
	}
	return out
}

// asTrigger returns an object as its own rules, if any, leave it: the rules that it triggers see this state.
// Covered reports whether it may have such rules.
func (c *chains) asTrigger(ctx context.Context, t engine.Target) (s state, covered bool, err error) {
	p := c.begin(ctx, t, false)
	covered = slices.ContainsFunc(c.rules, func(r *triggeredRule) bool { return covers(r.wants, &t) })
	if covered && covers(c.own, &t) && c.chosen(&t) {
		err = p.chain()
	}
	return p.state(), covered, err
}

// follow asks triggers again until every rule has seen the final state.
func (c *chains) follow(ctx context.Context) error {
	if !c.possible || len(c.effects.all) == 0 {
		return nil
	}
	for _, f := range c.effects.all {
		c.first[f.trigger] = append(c.first[f.trigger], f)
	}
	endless := false
	next, err := c.fedBy(ctx, c.effects.all)
	for err == nil && len(next) > 0 { // a rule depends on only those before it, so that this ends
		next, err = c.round(ctx, next, c.inTurn)
	}
	next = slices.DeleteFunc(c.inOrder(), (*fed).settled)
	for err == nil && len(next) > 0 {
		next = slices.DeleteFunc(next, func(f *fed) bool {
			f.visits++
			endless = endless || f.visits > maxVisits
			return f.visits > maxVisits
		})
		next, err = c.round(ctx, next, c.atEnd)
	}
	if endless {
		c.fail()
	}
	c.effects.all = slices.DeleteFunc(c.effects.all, func(f *orderedEffect) bool { return f.gone })
	return err
}

// inOrder returns the triggers on which effects act, in the order of the run.
func (c *chains) inOrder() []*fed {
	return slices.SortedFunc(maps.Values(c.fed), func(a, b *fed) int { return cmp.Compare(a.place, b.place) })
}

// round visits triggers, and returns those under new or removed effects.
func (c *chains) round(
	ctx context.Context, triggers []*fed, visit func(context.Context, *fed) error,
) ([]*fed, error) {
	c.news = nil
	for _, f := range triggers {
		if err := visit(ctx, f); err != nil {
			return nil, err
		}
	}
	return c.fedBy(ctx, c.news)
}

// inTurn asks the rules whose view of the trigger, as left by the rules before them, has changed.
func (c *chains) inTurn(ctx context.Context, f *fed) error {
	p, err := c.walk(ctx, f, func(r *triggeredRule, s state) error {
		if same(f.asked[r.turn], s.target.Object) {
			return nil
		}
		got, err := c.ask(ctx, f, r, s)
		if err == nil {
			c.replace(f, r, got.effectsOfRule(f, r))
			c.report(r.ref, got)
		}
		return err
	})
	if err == nil {
		f.final = p.state().target.Object
	}
	return err
}

// atEnd asks the rules that have not seen the final state, until the trigger no longer changes by its own
// effects. Rules that go on changing their own trigger are not asked again, and return to their effects at
// the beginning of the visit.
func (c *chains) atEnd(ctx context.Context, f *fed) error {
	began := maps.Clone(f.effects)
	for i := 0; ; i++ {
		p, err := c.walk(ctx, f, func(*triggeredRule, state) error { return nil })
		if err != nil {
			return err
		}
		s := p.state()
		f.final = s.target.Object
		changed, err := c.askAtEnd(ctx, f, s)
		if err != nil || !changed {
			return err
		}
		for _, r := range f.matching {
			if i >= maxVisits && slices.ContainsFunc(f.effects[r.turn], f.actsOnItself) {
				c.replace(f, r, began[r.turn])
				f.kept[r.turn] = true
				for _, own := range f.effects[r.turn] {
					own.repeats = true
				}
			}
		}
	}
}

// askAtEnd asks the rules that saw another state, and reports whether this may change the trigger itself.
func (c *chains) askAtEnd(ctx context.Context, f *fed, s state) (changed bool, err error) {
	for _, r := range f.matching {
		if f.kept[r.turn] || same(f.asked[r.turn], f.final) {
			continue
		}
		got, err := c.ask(ctx, f, r, s)
		if err != nil {
			return false, err
		}
		if effects := got.effectsOfRule(f, r); len(effects) > 0 || len(f.effects[r.turn]) == 0 {
			c.replace(f, r, effects)
			c.report(r.ref, got)
			changed = changed || slices.ContainsFunc(effects, f.actsOnItself)
		}
	}
	return changed, nil
}

// walk evaluates the trigger with the current effects. It calls before at the turn of each rule that the
// trigger may trigger.
func (c *chains) walk(ctx context.Context, f *fed, before func(*triggeredRule, state) error) (*pass, error) {
	p := c.begin(ctx, f.target, false)
	if covers(c.own, &f.target) {
		if err := p.chain(); err != nil {
			return nil, err
		}
	}
	if len(f.asked) == 0 {
		for _, r := range f.matching {
			f.asked[r.turn] = p.state().target.Object
		}
	}
	begun, from := p.target.Object, turn{}
	acting := func(to turn) (out []*orderedEffect) {
		for _, e := range c.effects.actingOn(f.key, f.target.Object) {
			if e.compare(from) >= 0 && e.compare(to) < 0 {
				out = append(out, e)
			}
		}
		return out
	}
	for _, r := range f.matching {
		if err := p.effects(acting(r.turn)); err != nil {
			return nil, err
		}
		if err := before(r, p.state()); err != nil {
			return nil, err
		}
		from = r.turn
	}
	if err := p.effects(acting(turn{program: math.MaxInt})); err != nil || p.target.Object == begun {
		return p, err
	}
	return p, p.settle(c.effects.actingOn(f.key, f.target.Object), true)
}

// ask asks a rule's program for the effects of a trigger in a state.
func (c *chains) ask(ctx context.Context, f *fed, r *triggeredRule, s state) (answer, error) {
	f.asked[r.turn] = s.target.Object
	if c.answer.program == r.program && c.answer.state == s.target.Object {
		return c.answer, nil
	}
	c.answer = answer{
		r.program, s.target.Object,
		&triggered{key: f.target.Key, rec: &recorder{reasons: c.options.Reasons}},
	}
	i := slices.IndexFunc(c.programs, func(p propagation) bool { return p.program == r.program })
	return c.answer, c.effectsOf(ctx, s, c.programs[i], c.answer.triggered)
}

// effectsOfRule returns the effects of a rule because of a trigger.
func (a answer) effectsOfRule(f *fed, r *triggeredRule) (out []*orderedEffect) {
	for _, e := range a.effects {
		if e.turn == r.turn {
			e.trigger = f.place
			out = append(out, &e)
		}
	}
	return out
}

// replace replaces the effects of a rule because of a trigger.
func (c *chains) replace(f *fed, r *triggeredRule, effects []*orderedEffect) {
	had := f.effects[r.turn]
	f.effects[r.turn] = effects
	c.reaches.recount(r.ref, len(had) > 0, len(effects) > 0)
	for _, e := range had {
		e.gone = true
	}
	for _, e := range effects {
		if !e.gone {
			c.addInScope(e)
		}
		e.gone = false
	}
	for _, e := range slices.Concat(had, effects) {
		if !e.Subjects.Exact() || subjectKey(e.Subjects).Named() != f.key {
			c.news = append(c.news, e)
		}
	}
}

// report replaces a trigger's report of a rule that was asked again.
func (c *chains) report(rule engine.RuleRef, now answer) {
	key, t := now.key.Named(), &triggered{rec: &recorder{}}
	for _, from := range []*triggered{cmp.Or(c.triggers[key], t), now.triggered} {
		for _, s := range from.rec.steps {
			if (s.Rule == rule) == (from == now.triggered) {
				t.rec.steps = append(t.rec.steps, s)
			}
		}
		for _, f := range from.effects {
			if (f.Rule == rule) == (from == now.triggered) {
				t.effects = append(t.effects, f)
			}
		}
	}
	c.triggers[key] = t
}

// fedBy returns the triggers on which some effects act. It reads the new ones.
func (c *chains) fedBy(ctx context.Context, effects []*orderedEffect) ([]*fed, error) {
	var acting effectIndex
	for _, f := range effects {
		one := *f
		one.gone = false // a removed effect changes its trigger as well
		acting.add(&one)
	}
	see := func(_ context.Context, t engine.Target) (*fed, error) {
		f := &fed{
			key: t.Key.Named(), target: t, effects: map[turn][]*orderedEffect{},
			asked: map[turn]*unstructured.Unstructured{}, kept: map[turn]bool{},
		}
		if c.chosen(&t) && len(acting.actingOn(t.Key, t.Object)) > 0 { // else the run does not change it
			f.matching = c.triggeredBy(&t)
		}
		return f, nil
	}
	for _, selections := range c.unread(effects) {
		err := eachPage(ctx, c.options.Workers, c.Evaluation.pages(ctx, c.source, selections), see,
			func(all []*fed) error {
				for _, f := range all {
					if len(f.matching) > 0 && c.fed[f.key] == nil {
						c.keepFed(f)
					}
				}
				return nil
			})
		if err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(c.inOrder(),
		func(f *fed) bool { return len(acting.actingOn(f.key, f.target.Object)) == 0 }), nil
}

// keepFed keeps a trigger. One that the first pass did not see had other labels then.
func (c *chains) keepFed(f *fed) {
	var streamed bool
	if f.place, streamed = c.places[f.key]; !streamed {
		f.place = c.effects.triggers
		c.effects.triggers++
	}
	for _, e := range c.first[f.place] {
		f.effects[e.turn] = append(f.effects[e.turn], e)
	}
	c.fed[f.key] = f
}

// mostByName is the number of objects to read one by one where a listing would have them all.
const mostByName = 5

// unread returns the selections of triggers, not read before, on which effects may act: one for each, in
// several listings, where these take fewer requests than a single one.
func (c *chains) unread(effects []*orderedEffect) [][]engine.Selection {
	var exact, kinds []engine.Selection
	listed := false
	for _, f := range effects {
		s := f.Subjects
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
	if !listed && len(exact) <= mostByName {
		return c.narrowed(exact)
	}
	kinds = withoutLabels(kinds)
	return [][]engine.Selection{slices.DeleteFunc(slices.Clone(c.wants), func(s engine.Selection) bool {
		return !slices.ContainsFunc(kinds, func(kind engine.Selection) bool { return c.mayBe(s, kind) })
	})}
}

// narrowed returns the triggers among some objects. Labels are left open, since rules may change them.
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

// mayBe reports whether a match of a rule may be the subject of an effect.
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

// withoutLabels returns the selections without labels, each once.
func withoutLabels(all []engine.Selection) []engine.Selection {
	var out engine.SelectionSet
	for _, s := range all {
		s.Labels = nil
		out.Add(s)
	}
	return out.All
}

// fail makes effects fail whose triggers go on changing after the last visit, and everything that depends on
// them.
func (c *chains) fail() {
	var rules []engine.RuleRef
	var triggers []engine.ObjectKey
	failed := map[*orderedEffect]bool{}
	var left []*orderedEffect
	fail := func(f *fed) {
		for _, r := range f.matching {
			for _, e := range f.effects[r.turn] {
				if !failed[e] {
					failed[e] = true
					left = append(left, e)
				}
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
		onOne := slices.ContainsFunc(triggers, f.Subjects.MatchesName)
		if onOne && !slices.Contains(rules, f.Rule) {
			rules = append(rules, f.Rule)
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
		f.Apply = func(context.Context, engine.Target, *engine.World, engine.Sink) engine.Step {
			return engine.Step{Rule: f.Rule, Trigger: f.Trigger, Outcome: engine.Failed, Err: err}
		}
	}
}

// covers reports whether selections may select an object. Labels do not count.
func covers(all []engine.Selection, t *engine.Target) bool {
	return slices.ContainsFunc(all, func(s engine.Selection) bool {
		return s.MatchesName(t.Key) && (s.Resource == "" || s.MatchesResource(resourceName(t)))
	})
}
