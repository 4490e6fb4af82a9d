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

// maxChanges bounds how often a trigger changes at the end, and how often by its own effects.
const maxChanges = 5

// chains follow the changes of a run to its triggers, so that each rule sees a trigger as the run makes it.
// First in turn: when a rule is asked for its effects, the rules before it have changed the trigger. Then at
// the end, until nothing changes: if a rule names targets for the new state, they replace its earlier ones;
// if it names none, it keeps them, because its own change may have ended its condition.
type chains struct {
	*Evaluation
	source   engine.Source
	programs []propagation
	rules    []triggeredRule    // in turn
	wants    []engine.Selection // their triggers, without labels
	byLabels []engine.Selection // those of them that labels select
	own      []engine.Selection // objects that rules matching them may change
	fed      map[engine.ObjectKey]*fed
	read     map[engine.Selection]bool // subjects already searched for triggers
	news     effectIndex               // of a round: new or removed
	answer   answer                    // the last one
}

// triggeredRule is a rule that changes objects other than its matches.
type triggeredRule struct {
	turn  int // of the rule
	of    *propagation
	ref   engine.RuleRef
	wants []engine.Selection // its triggers, or a superset
}

// answer is a program's answer to a question: what does this state trigger?
type answer struct {
	of    *propagation
	state *unstructured.Unstructured
	*triggered
}

// fed is a trigger on which effects act.
type fed struct {
	*triggered
	target  engine.Target
	rules   []*asked // that it may trigger, in turn
	final   *unstructured.Unstructured
	changes int // of the final state; beyond maxChanges, it goes on
}

// asked is a rule that is asked for its effects because of a trigger.
type asked struct {
	triggeredRule
	state   *unstructured.Unstructured // for which it was asked
	effects []*orderedEffect
	first   []*orderedEffect // in turn, or else at the end
	kept    bool             // it is not asked again, since it would go on changing its own trigger
}

// same reports whether two states of an object are alike.
func same(a, b *unstructured.Unstructured) bool { return a == b || diff.Same(a.Object, b.Object) }

func newChains(e *Evaluation, src engine.Source, programs []propagation) *chains {
	c := &chains{
		Evaluation: e, source: src, programs: programs,
		fed: map[engine.ObjectKey]*fed{}, read: map[engine.Selection]bool{},
	}
	for _, p := range e.programs {
		for _, d := range p.Describe() {
			if d.Existing != engine.ByTrigger {
				c.own = append(c.own, d.Matches...)
			}
		}
	}
	var wants []engine.Selection
	for i := range programs {
		for _, d := range programs[i].Describe() {
			if d.Existing == engine.ByTrigger {
				c.rules = append(c.rules, triggeredRule{programs[i].turns[d.Rule], &programs[i], d.Rule, d.Matches})
				wants = append(wants, d.Matches...)
			}
		}
	}
	c.wants, c.byLabels = withoutLabels(wants), withoutLabels(labelled(wants))
	return c
}

// asTrigger returns an object as its own rules, if any, leave it: the rules that it triggers see this state.
// It also returns the rules that it may trigger, in turn; labels do not count.
func (c *chains) asTrigger(ctx context.Context, t engine.Target) (s state, rules []triggeredRule, err error) {
	for _, r := range c.rules {
		if covers(r.wants, &t) {
			rules = append(rules, r)
		}
	}
	p := c.begin(ctx, t, false)
	if len(rules) > 0 && covers(c.own, &t) && c.chosen(&t) {
		err = p.chain()
	}
	return p.state(), rules, err
}

// follow asks triggers again until every rule has seen the final state. In turn this ends, because a rule
// depends on only those before it.
func (c *chains) follow(ctx context.Context) error {
	for _, visit := range []func(context.Context, *fed) error{c.inTurn, c.atEnd} {
		next, err := c.fedBy(ctx, &c.effects)
		for err == nil && len(next) > 0 {
			c.news = effectIndex{}
			for _, f := range next {
				if err := visit(ctx, f); err != nil {
					return err
				}
			}
			next, err = c.fedBy(ctx, &c.news)
		}
		if err != nil {
			return err
		}
	}
	c.fail()
	c.effects.all = slices.DeleteFunc(c.effects.all, func(f *orderedEffect) bool { return f.gone })
	return nil
}

// inTurn asks the rules whose view of the trigger, as left by the rules before them, has changed.
func (c *chains) inTurn(ctx context.Context, f *fed) error {
	p := c.begin(ctx, f.target, false)
	if err := p.chain(); err != nil {
		return err
	}
	from := 0
	for _, r := range f.rules {
		if err := p.act(from, r.turn); err != nil {
			return err
		}
		if _, err := c.ask(ctx, f, r, p.state(), false); err != nil {
			return err
		}
		r.first, from = r.effects, r.turn
	}
	return nil
}

// atEnd asks the rules that have not seen the final state, until the trigger no longer changes by its own
// effects. Rules that go on changing their own trigger return to their first effects for good.
func (c *chains) atEnd(ctx context.Context, f *fed) error {
	for i, again := 0, true; again; i++ {
		p := c.begin(ctx, f.target, false)
		if err := p.evaluate(true); err != nil {
			return err
		}
		final := p.state().target.Object
		if i == 0 && !same(f.final, final) {
			f.changes++
		}
		if f.final = final; f.changes > maxChanges {
			return nil
		}
		again = false
		for _, r := range f.rules {
			news, err := c.ask(ctx, f, r, p.state(), true)
			if err != nil {
				return err
			}
			if !news || !r.actsOn(f) {
				continue
			}
			if len(r.first) == 0 {
				r.first = r.effects
			}
			if again = true; i >= maxChanges {
				c.replace(f, r, r.first)
				r.kept = true
				for _, own := range r.effects {
					own.repeats = true
				}
			}
		}
	}
	return nil
}

// actsOn reports whether an effect of the rule may act on a trigger.
func (r *asked) actsOn(f *fed) bool {
	return slices.ContainsFunc(r.effects, func(e *orderedEffect) bool {
		return e.mayActOn(f.target.Key, f.target.Object)
	})
}

// ask asks a rule for its effects because of a trigger, unless it has seen the state, and reports whether it
// has new ones; these are in the report of the trigger. If wanted, it keeps those that it has where it names
// none.
func (c *chains) ask(ctx context.Context, f *fed, r *asked, s state, keep bool) (news bool, err error) {
	if r.kept || same(r.state, s.target.Object) {
		return false, nil
	}
	r.state = s.target.Object
	if c.answer.of != r.of || c.answer.state != r.state {
		c.answer = answer{r.of, r.state, &triggered{rec: &recorder{reasons: c.options.Reasons}}}
		if err := c.effectsOf(ctx, s, *r.of, c.answer.triggered); err != nil {
			return false, err
		}
	}
	effects := r.own(c.answer.effects)
	if keep && len(effects) == 0 && len(r.effects) > 0 {
		return false, nil
	}
	for _, e := range effects {
		e.trigger = f.place
	}
	c.replace(f, r, effects)
	f.triggered.effects = append(f.triggered.effects, effects...)
	f.rec.steps = slices.DeleteFunc(f.rec.steps, func(s engine.Step) bool { return s.Rule == r.ref })
	for _, s := range c.answer.rec.steps {
		if s.Rule == r.ref {
			f.rec.steps = append(f.rec.steps, s)
		}
	}
	c.triggers[f.target.Key.Named()] = f.triggered
	return true, nil
}

// own returns the effects of the rule.
func (r *asked) own(effects []*orderedEffect) []*orderedEffect {
	return slices.DeleteFunc(slices.Clone(effects), func(e *orderedEffect) bool { return e.turn != r.turn })
}

// replace replaces the effects of a rule because of a trigger.
func (c *chains) replace(f *fed, r *asked, effects []*orderedEffect) {
	for _, e := range r.effects {
		e.gone = true
	}
	for _, e := range effects {
		if !e.gone {
			c.addInScope(e)
		}
		e.gone = false
	}
	for _, e := range slices.Concat(r.effects, effects) {
		if acting := *e; !e.Subjects.Exact() || !e.mayActOn(f.target.Key, f.target.Object) {
			acting.gone = false // a removed effect changes its subjects as well
			c.news.add(&acting)
		}
	}
	r.effects = effects
}

// fedBy returns the triggers on which some effects act, in the order of the run. It reads the new ones.
func (c *chains) fedBy(ctx context.Context, effects *effectIndex) ([]*fed, error) {
	see := func(ctx context.Context, t engine.Target) (*fed, error) {
		f := &fed{target: t, final: t.Object}
		if !c.chosen(&t) || len(effects.actingOn(t.Key, t.Object)) == 0 { // else the run does not change it
			return f, nil
		}
		s, rules, err := c.asTrigger(ctx, t)
		for _, r := range rules {
			f.rules = append(f.rules, &asked{triggeredRule: r, state: s.target.Object})
		}
		return f, err
	}
	keep := func(all []*fed) error {
		for _, f := range all {
			key := f.target.Key.Named()
			if len(f.rules) == 0 || c.fed[key] != nil {
				continue
			}
			c.fed[key] = f
			if f.triggered = c.triggers[key]; f.triggered == nil { // in the first pass it had other labels
				f.triggered = &triggered{place: c.effects.triggers, rec: &recorder{}}
				c.effects.triggers++
			}
			for _, r := range f.rules {
				r.effects = r.own(f.triggered.effects)
				r.first = r.effects
			}
		}
		return nil
	}
	for _, selections := range c.unread(effects.all) {
		pages := c.Evaluation.pages(ctx, c.source, selections)
		if err := eachPage(ctx, c.options.Workers, pages, see, keep); err != nil {
			return nil, err
		}
	}
	out := slices.SortedFunc(maps.Values(c.fed), func(a, b *fed) int { return cmp.Compare(a.place, b.place) })
	return slices.DeleteFunc(out, func(f *fed) bool {
		return len(effects.actingOn(f.target.Key, f.target.Object)) == 0
	}), nil
}

// mostByName is the number of objects to read one by one where a listing would have them all.
const mostByName = 5

// unread returns the selections of triggers, not read before, on which effects may act: of a few objects each
// by itself, else of all in one listing. Labels are left open, since rules may change them.
func (c *chains) unread(effects []*orderedEffect) (out [][]engine.Selection) {
	var subjects []engine.Selection
	atOnce := 1
	for _, f := range effects {
		s := f.Subjects
		s.Labels = nil
		mayBe := func(want engine.Selection) bool { return c.mayBe(want, s) }
		if s.Subresource != "" || c.read[s] || !slices.ContainsFunc(c.wants, mayBe) {
			continue
		}
		c.read[s] = true
		for _, s := range c.narrow(s) {
			if subjects = append(subjects, s); !s.Exact() || len(subjects) > mostByName {
				atOnce = math.MaxInt
			}
		}
	}
	for some := range slices.Chunk(subjects, atOnce) {
		triggers := slices.DeleteFunc(slices.Clone(c.wants), func(s engine.Selection) bool {
			return !slices.ContainsFunc(some, func(subject engine.Selection) bool { return c.mayBe(s, subject) })
		})
		for i := range triggers {
			if t, s := &triggers[i], some[0]; atOnce == 1 {
				t.Group, t.Kind, t.Namespace, t.Name = s.Group, s.Kind, s.Namespace, s.Name
			}
		}
		if len(triggers) > 0 {
			out = append(out, triggers)
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

// fail makes effects fail whose triggers go on changing, and everything that depends on them.
func (c *chains) fail() {
	var left []*fed
	endless := false
	for _, f := range c.fed {
		if f.changes >= maxChanges {
			left, endless = append(left, f), endless || f.changes > maxChanges
		}
	}
	if !endless {
		return
	}
	var rules, triggers []string
	for _, f := range left {
		triggers = append(triggers, f.target.Key.String())
		for _, r := range f.rules {
			if slices.ContainsFunc(left, r.actsOn) {
				rules = append(rules, r.ref.String())
			}
		}
	}
	slices.Sort(rules)
	slices.Sort(triggers)
	err := fmt.Errorf("reached the limit of %d rounds: %s go on changing what triggers them (%s), so they change nothing; give one of them a precondition that its change ends",
		maxChanges, engine.Few(slices.Compact(rules)), engine.Few(triggers))
	for i := 0; i < len(left); i++ {
		for _, r := range left[i].rules {
			for _, e := range r.effects {
				e.Apply = func(context.Context, engine.Target, *engine.World, engine.Sink) engine.Step {
					return engine.Step{Rule: e.Rule, TriggeredBy: &e.Trigger, Outcome: engine.Failed, Err: err}
				}
			}
			for _, f := range c.fed {
				if r.actsOn(f) && !slices.Contains(left, f) {
					left = append(left, f)
				}
			}
		}
	}
}

// covers reports whether selections may select an object. Labels do not count.
func covers(all []engine.Selection, t *engine.Target) bool {
	return slices.ContainsFunc(all, func(s engine.Selection) bool {
		return s.MatchesName(t.Key) && (s.Resource == "" || s.MatchesResource(t.Resource(nil).Resource))
	})
}
