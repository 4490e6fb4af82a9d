package evaluation

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

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
	named := newMeeting(subjects)
	return [][]engine.Selection{slices.DeleteFunc(slices.Clone(r.wants.all), func(s engine.Selection) bool {
		return !slices.ContainsFunc(named.with(s), func(subject engine.Selection) bool { return r.mayBe(s, subject) })
	})}
}

// narrowed are the triggers among the objects of a selection. Labels are left open, since rules may
// change them.
func (r *round) narrowed(subject engine.Selection) []engine.Selection {
	var out []engine.Selection
	for _, s := range r.wants.with(subject) {
		if r.mayBe(s, subject) {
			s.Group, s.Kind, s.Namespace, s.Name = subject.Group, subject.Kind, subject.Namespace, subject.Name
			out = append(out, s)
		}
	}
	return withoutLabels(out)
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
