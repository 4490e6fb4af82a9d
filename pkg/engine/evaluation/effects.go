package evaluation

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// propagation is a Propagator with the place of its rules in the run.
type propagation struct {
	engine.Propagator
	turns        map[engine.RuleRef]int                // of its rules among all of the run
	subresources []string                              // whose updates trigger a rule
	requested    map[engine.RuleRef][]engine.Selection // of the rules that only such updates trigger
}

func newPropagation(q engine.Propagator, first int) propagation {
	p := propagation{
		Propagator: q, turns: map[engine.RuleRef]int{},
		requested: map[engine.RuleRef][]engine.Selection{},
	}
	for i, d := range q.Describe() {
		p.turns[d.Rule] = first + i
		for _, s := range d.Matches {
			if s.Subresource == "" {
				continue
			}
			p.requested[d.Rule] = append(p.requested[d.Rule], s)
			if !slices.Contains(p.subresources, s.Subresource) {
				p.subresources = append(p.subresources, s.Subresource)
			}
		}
	}
	return p
}

// asks reports whether an object, or an update of its subresource, may trigger a rule.
func (p propagation) asks(r engine.RuleRef, key engine.ObjectKey) bool {
	requested := p.requested[r]
	return key.Subresource == "" && requested == nil ||
		slices.ContainsFunc(requested, func(s engine.Selection) bool {
			return s.Subresource == key.Subresource && s.MatchesName(key)
		})
}

// orderedEffect is an Effect and its rank: turn of the rule, place of the trigger.
type orderedEffect struct {
	engine.Effect
	turn    int
	trigger int
	by      []engine.RuleRef // that changed the trigger, as the rule sees it
	repeats bool             // the rule would go on changing its own trigger
	gone    bool             // the rule does something else
	created bool             // the trigger is created
}

// mayActOn reports whether the subjects of an effect include an object, apart from labels.
func (f *orderedEffect) mayActOn(key engine.ObjectKey, u *unstructured.Unstructured) bool {
	if f.Subjects.Exact() {
		return subjectKey(f.Subjects).Named() == key.Named()
	}
	open := f.Subjects
	open.Labels = nil
	return key.Subresource == "" && open.Subresource == "" && open.Matches(u)
}

// selects reports whether the subjects of an effect that may act on an object include it, by its labels. A
// subresource has none: its object's labels were compared.
func (f *orderedEffect) selects(u *unstructured.Unstructured) bool {
	return f.Subjects.Labels == nil || f.Subjects.Subresource != "" || f.Subjects.Matches(u)
}

// triggered holds the effects and steps of one object as a trigger.
type triggered struct {
	key      engine.ObjectKey
	chosen   bool   // it is in the scope
	resource string // of the object; known where reasons are wanted
	place    int    // of the trigger in the run
	effects  []*orderedEffect
	rec      *recorder
}

// triggering returns the triggers of a propagating program's rules that may change an object of the scope. A
// run that keeps reasons also wants triggers of the other rules, and the objects of the scope as triggers.
func (e *Evaluation) triggering(q engine.Propagator) []engine.Selection {
	var out []engine.Selection
	for _, d := range q.Describe() {
		switch {
		case d.Existing != engine.ByTrigger:
			continue
		case len(d.Targets) == 0 ||
			slices.ContainsFunc(d.Targets, func(s engine.Selection) bool { return len(e.narrow(s)) > 0 }):
			e.reaching[d.Rule] = true
		case !e.options.Reasons:
			continue
		}
		out = append(out, d.Matches...)
	}
	if e.options.Reasons {
		for _, s := range q.Selections() {
			out = append(out, e.narrow(s)...)
		}
	}
	return out
}

// chosen reports whether an object is in the scope, as far as it shows, in whichever shard.
func (e *Evaluation) chosen(t *engine.Target) bool {
	return e.options.Scope.Includes(t.Key, t.Object.GetLabels()) && e.options.Scope.InPercent(t.Key)
}

// narrow returns the part of a selection that is in the scope.
func (e *Evaluation) narrow(s engine.Selection) []engine.Selection {
	return e.options.Scope.Narrow(s, e.world.Mapper)
}

func (e *Evaluation) trigger(ctx context.Context, t engine.Target, c *chains) (*triggered, error) {
	ctx, done := limit.Object(ctx, t.Key)
	defer done()
	out := &triggered{key: t.Key, chosen: e.chosen(&t), rec: &recorder{reasons: e.options.Reasons}}
	if e.options.Reasons {
		out.resource = t.Resource(nil).Resource
	}
	s, _, err := c.asTrigger(ctx, t)
	if err != nil {
		return nil, err
	}
	for _, p := range c.programs {
		if err := e.effectsOf(ctx, s, p, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// effectsOf adds the effects of one program: because of an object and, for rules with no other trigger,
// because of updates of its subresources.
func (e *Evaluation) effectsOf(ctx context.Context, t state, p propagation, out *triggered) error {
	if len(p.subresources) == 0 || t.target.Key.Subresource != "" {
		return e.addEffects(ctx, t, p, out)
	}
	for _, t.target.Key.Subresource = range append([]string{""}, p.subresources...) {
		one := &triggered{rec: &recorder{reasons: out.rec.reasons}}
		if t.target.Key.Subresource != "" && t.target.Request.Operation != engine.OperationUpdate {
			break
		}
		if err := e.addEffects(ctx, t, p, one); err != nil {
			return err
		}
		for i := range one.rec.steps {
			if s := &one.rec.steps[i]; p.asks(s.Rule, t.target.Key) {
				out.rec.steps = append(out.rec.steps, *s)
			}
		}
		for _, f := range one.effects {
			if p.asks(f.Rule, t.target.Key) {
				out.effects = append(out.effects, f)
			}
		}
	}
	return nil
}

func (e *Evaluation) addEffects(ctx context.Context, t state, p propagation, out *triggered) error {
	world := e.world.Watched()
	if t.target.HoldsSecrets() {
		world.NoteSecret()
	}
	from := len(out.rec.steps)
	var effects []engine.Effect
	_, err := guarded(allPolicies, t.target, out.rec, func() (_ *unstructured.Unstructured, err error) {
		effects, err = p.Effects(ctx, t.target, world, out.rec)
		return t.target.Object, err
	})
	if err != nil {
		return err
	}
	for i := range out.rec.steps[from:] {
		s := &out.rec.steps[from+i]
		s.Confidential = s.Confidential || quotes(&t.target, s)
	}
	for _, effect := range effects {
		out.effects = append(out.effects, &orderedEffect{
			Effect: effect, turn: p.turns[effect.Rule], by: t.by,
			created: t.target.Request.Operation == engine.OperationCreate,
		})
	}
	return nil
}

// addInScope stores an effect that may act in the scope.
func (e *Evaluation) addInScope(f *orderedEffect) {
	if e.options.Reasons || len(e.narrow(f.Subjects)) > 0 {
		e.effects.add(f)
	}
}

// keep stores the effects of one trigger that may act in the scope, and its steps. It is called for one
// trigger after the other, in source order.
func (e *Evaluation) keep(t *triggered) {
	t.place = e.effects.triggers
	for _, f := range t.effects {
		f.trigger = t.place
		e.addInScope(f)
	}
	e.effects.triggers++
	e.reaches.note(t)
	failed := slices.ContainsFunc(t.rec.steps,
		func(s engine.Step) bool { return s.Outcome.Incomplete() && e.reaching[s.Rule] })
	if t.chosen || failed {
		e.triggers[t.key.Named()] = t
	}
}

// addTriggerSteps adds the findings of the first pass to an object's Change: what the object did, or failed
// to do, as a trigger and, if the run keeps reasons, why rules that other objects trigger do not change it.
func (e *Evaluation) addTriggerSteps(c *engine.Change) {
	own := len(c.Steps)
	e.reportTrigger(c)
	if c.Created != nil {
		e.created.reportTrigger(c.Created)
	}
	unreached := e.reaches.unreached(c,
		slices.DeleteFunc(e.effects.actingOn(c.Subject, c.Target.Object), func(f *orderedEffect) bool {
			return !f.selects(c.Before) && !f.selects(c.After)
		}))
	if len(unreached) == 0 {
		return
	}
	for _, one := range states(c) {
		one.Steps = append(one.Steps, unreached...)
		slices.SortStableFunc(one.Steps[own:], e.reaches.byRank)
	}
}

// states returns a change and, if there is one, its Shown.
func states(c *engine.Change) []*engine.Change {
	if c.Shown == nil {
		return []*engine.Change{c}
	}
	return []*engine.Change{c, c.Shown}
}

// reportTrigger adds to an object's Change what it did, or failed to do, as a trigger. A mismatch as a
// trigger is left out for a rule that another trigger made change it.
func (e *Evaluation) reportTrigger(c *engine.Change) {
	t := e.triggers[c.Subject.Named()]
	if t == nil {
		return
	}
	delete(e.triggers, c.Subject.Named())
	acted := map[engine.RuleRef]bool{}
	for i := range c.Steps {
		if c.Steps[i].Outcome != engine.NotMatched {
			acted[c.Steps[i].Rule] = true
		}
	}
	for i := range t.rec.steps {
		if s := &t.rec.steps[i]; s.Outcome != engine.NotMatched || !acted[s.Rule] {
			addStep(c, s)
		}
	}
	asked := slices.DeleteFunc(slices.Concat(c.Asked, e.others), func(r engine.RuleRef) bool {
		return slices.ContainsFunc(t.effects, func(f *orderedEffect) bool { return f.Rule == r && !f.gone })
	})
	for _, one := range states(c) {
		one.Asked = asked
	}
}

// addStep adds a step that changed nothing of the object.
func addStep(c *engine.Change, s *engine.Step) {
	if s.Confidential && c.Shown == nil {
		out := *c
		out.Steps, c.Shown = slices.Clone(c.Steps), &out
	}
	c.Steps = append(c.Steps, *s)
	if c.Shown != nil {
		c.Shown.Steps = append(c.Shown.Steps, shownStep(*s, &view{}, &view{}))
	}
}

// runLeftTriggers reports triggers on which a rule failed and that the second pass did not see again: the
// changes of the rule are unknown.
func (e *Evaluation) runLeftTriggers(emit func(*engine.Change) error) error {
	keys := make([]engine.ObjectKey, 0, len(e.triggers))
	for k, t := range e.triggers {
		if e.options.Scope.InShard(k) &&
			slices.ContainsFunc(t.rec.steps, func(s engine.Step) bool { return s.Outcome.Incomplete() }) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b engine.ObjectKey) int { return cmp.Compare(a.String(), b.String()) })
	for _, k := range keys {
		c := &engine.Change{Subject: k}
		e.reportTrigger(c)
		if err := emit(c); err != nil {
			return err
		}
	}
	return nil
}

// effectIndex finds the effects that act on an object. Most effects name one object; the others are tried on
// every object of their kind.
type effectIndex struct {
	all      []*orderedEffect
	triggers int
	named    map[engine.ObjectKey][]*orderedEffect
	byKind   map[string][]*orderedEffect // by kind; "" holds wildcard kinds
}

func (x *effectIndex) add(f *orderedEffect) {
	if x.named == nil {
		x.named, x.byKind = map[engine.ObjectKey][]*orderedEffect{}, map[string][]*orderedEffect{}
	}
	x.all = append(x.all, f)
	switch s := f.Subjects; {
	case s.Exact():
		k := subjectKey(s).Named()
		x.named[k] = append(x.named[k], f)
	case s.ExactKind():
		x.byKind[s.Kind] = append(x.byKind[s.Kind], f)
	default:
		x.byKind[""] = append(x.byKind[""], f)
	}
}

func rank(a, b *orderedEffect) int {
	return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(a.trigger, b.trigger))
}

// actingOn lists the effects that may act on an object, in order: rules before them decide whether it has the
// labels that they select. An object read through a subresource has only its key.
func (x *effectIndex) actingOn(key engine.ObjectKey, u *unstructured.Unstructured) []*orderedEffect {
	if len(x.all) == 0 || u == nil {
		return nil
	}
	out := slices.DeleteFunc(slices.Clone(x.named[key.Named()]), func(f *orderedEffect) bool { return f.gone })
	if key.Subresource == "" {
		for _, kind := range []string{u.GetKind(), ""} {
			for _, f := range x.byKind[kind] {
				if !f.gone && f.mayActOn(key, u) {
					out = append(out, f)
				}
			}
		}
	}
	slices.SortStableFunc(out, rank)
	return out
}

// subjectKey returns the key of the one object of an exact selection.
func subjectKey(s engine.Selection) engine.ObjectKey {
	return engine.ObjectKey{
		GroupKind: schema.GroupKind{Group: s.Group, Kind: s.Kind}, Version: s.Version,
		Namespace: s.Namespace, Name: s.Name, Subresource: s.Subresource,
	}
}

// pages streams a source, less the parts that cannot be read.
func (e *Evaluation) pages(
	ctx context.Context, src engine.Source, selections []engine.Selection,
) iter.Seq2[engine.Page, error] {
	return func(yield func(engine.Page, error) bool) {
		for page, err := range src.Pages(ctx, selections) {
			if err != nil && e.isUnreadable(err) {
				continue
			}
			if !yield(page, err) {
				return
			}
		}
	}
}

// together is the number of results that are kept to be taken in order.
const together = 32

// eachPage calls a function for every target of the pages, several side by side. Take receives the results in
// the order of the source. The first error ends it.
func eachPage[R any](
	ctx context.Context, workers int, pages iter.Seq2[engine.Page, error],
	do func(context.Context, engine.Target) (R, error), take func([]R) error,
) error {
	for page, err := range pages {
		if err != nil {
			return err
		}
		for from := 0; from < page.Len(); from += together {
			results := make([]R, min(together, page.Len()-from))
			err = sideBySide(ctx, workers, len(results), func(ctx context.Context, i int) error {
				t, err := page.Target(from + i)
				if err == nil {
					results[i], err = do(ctx, t)
				}
				return err
			})
			if err == nil {
				err = take(results)
			}
			if err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// sideBySide calls a function for each number below n. The first error ends it.
func sideBySide(ctx context.Context, workers, n int, do func(context.Context, int) error) error {
	group, inner := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(workers, n) {
		group.Go(func() error {
			for i := next.Add(1); i <= int64(n) && inner.Err() == nil; i = next.Add(1) {
				if err := do(inner, int(i-1)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}
