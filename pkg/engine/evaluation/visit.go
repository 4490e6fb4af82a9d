package evaluation

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// visit is a trigger on which effects act, whose rules are asked again.
type visit struct {
	*chains
	*fed
	ctx     context.Context  // a visit does not outlive its call
	acting  []*orderedEffect // what may act on it, in order
	remade  []*remade        // what came of it
	answers map[asking]*triggered
}

// asking is a question to a program: what does this state trigger?
type asking struct {
	program int
	state   *unstructured.Unstructured
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
	p, err := v.walk(func(r *triggeredRule, s *state) error {
		if same(v.asked[r.turn], s.target.Object) {
			return nil
		}
		m, err := v.remake(r, s)
		v.replace(m)
		return err
	})
	if err != nil {
		return err
	}
	v.final = p.state().target.Object
	return nil
}

// atEnd asks the rules that saw another state than the one that the run ends with, until the trigger no longer
// changes by what it triggers itself. Rules that go on changing their own trigger are not asked again.
func (v *visit) atEnd() error {
	for i := 0; ; i++ {
		p, err := v.walk(func(*triggeredRule, *state) error { return nil })
		if err != nil {
			return err
		}
		s := p.state()
		v.final = s.target.Object
		changed := false
		for _, r := range v.matching {
			if v.kept[r.turn] || same(v.asked[r.turn], v.final) {
				continue
			}
			m, err := v.remake(r, &s)
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
		case i >= maxVisits:
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
func (v *visit) remake(r *triggeredRule, s *state) (*remade, error) {
	id := asking{r.program, s.target.Object}
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
	v.asked[r.turn] = s.target.Object
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
func (v *visit) walk(before func(*triggeredRule, *state) error) (*pass, error) {
	p := v.begin(v.ctx, v.target, false)
	if v.own.covers(&v.target) {
		if err := p.chain(); err != nil {
			return nil, err
		}
	}
	if len(v.asked) == 0 {
		for _, r := range v.matching {
			v.asked[r.turn] = p.state().target.Object
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
		if err := before(r, &s); err != nil {
			return nil, err
		}
	}
	if err := p.effects(v.acting[next:]); err != nil || p.target.Object == begun {
		return p, err
	}
	return p, p.settle(v.acting, true)
}

// replace puts the steps of a rule in the place of those that it had.
func (r *recorder) replace(rule engine.RuleRef, by *recorder) {
	r.steps = slices.DeleteFunc(slices.Clone(r.steps), func(s engine.Step) bool { return s.Rule == rule })
	for _, s := range by.steps {
		if s.Rule == rule {
			r.steps = append(r.steps, s)
		}
	}
	r.notMatched = slices.DeleteFunc(slices.Clone(r.notMatched), func(known engine.RuleRef) bool { return known == rule })
	if slices.Contains(by.notMatched, rule) {
		r.notMatched = append(r.notMatched, rule)
	}
}
