package evaluation

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// propagation is a Program that is a Propagator, and the place of its rules in the run.
type propagation struct {
	engine.Program
	engine.Propagator
	order ruleOrder
}

// ruleOrder ranks rules by program, then by their place in it.
type ruleOrder struct {
	program int
	rules   map[engine.RuleRef]int
}

// of returns the turn of a rule.
func (o ruleOrder) of(r engine.RuleRef) turn { return turn{o.program, o.rules[r]} }

func newRuleOrder(program int, rules []engine.RuleRef) ruleOrder {
	o := ruleOrder{program: program, rules: make(map[engine.RuleRef]int, len(rules))}
	for i, r := range rules {
		o.rules[r] = i
	}
	return o
}

// orderedEffect is an Effect and its rank: program, rule, trigger.
type orderedEffect struct {
	engine.Effect
	turn
	trigger  int
	subjects engine.Selection
	by       []engine.RuleRef // that made the trigger what it is for the rule
	secret   bool             // a Secret was used to make it
	hiding   engine.Effect    // the same effect without values of Secrets; nil where there is none
	shown    engine.Selection // the subjects as they may be shown
	repeats  bool             // the rule would go on changing its own trigger
	endless  error            // why it does nothing; nil where it does
	replaced bool
}

// unit is all that one rule does because of one trigger.
type unit struct {
	turn
	trigger int
}

func (f *orderedEffect) unit() unit { return unit{f.turn, f.trigger} }

// mayActOn reports whether the subjects of an effect include an object, once it has their labels.
func (f *orderedEffect) mayActOn(key engine.ObjectKey, u *unstructured.Unstructured) bool {
	if f.subjects.Exact() {
		return subjectKey(f.subjects).Named() == key.Named()
	}
	open := f.subjects
	open.Labels = nil
	return key.Subresource == "" && open.Subresource == "" && open.Matches(u)
}

// selects reports whether the subjects of an effect that may act on an object include it, by its labels. A
// subresource has none: those of its object were compared.
func (f *orderedEffect) selects(u *unstructured.Unstructured) bool {
	return f.subjects.Labels == nil || f.subjects.Subresource != "" || f.subjects.Matches(u)
}

// triggered is what one object triggered.
type triggered struct {
	key      engine.ObjectKey
	covered  bool   // a rule may be triggered by it
	resource string // of the object; known where reasons are wanted
	effects  []orderedEffect
	rec      *recorder
}

func (e *Evaluation) trigger(ctx context.Context, t engine.Target, c *chains) (*triggered, error) {
	out := &triggered{key: t.Key, rec: &recorder{reasons: e.options.Reasons}}
	if e.options.Reasons {
		out.resource = resourceName(&t)
	}
	s, covered, err := c.asTrigger(ctx, t)
	if err != nil {
		return nil, err
	}
	out.covered = covered
	for _, p := range c.programs {
		if err := e.effectsOf(ctx, s, p, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// effectsOf adds the effects of one program. Where it uses a Secret, it is asked a second time, in the
// world that hides.
func (e *Evaluation) effectsOf(ctx context.Context, t state, p propagation, out *triggered) error {
	ctx, use := engine.WatchSecrets(ctx)
	if t.secret {
		engine.NoteSecret(ctx)
	}
	from := len(out.rec.steps)
	effects, err := named(ctx, t.target, p, e.world, out.rec)
	if err != nil {
		return err
	}
	secret := use.Any()
	var made []engine.Effect
	if secret && (len(effects) > 0 || !silent(out.rec.steps[from:])) {
		rec := &recorder{reasons: out.rec.reasons}
		if made, err = named(ctx, t.hiding, p, e.hidingWorld, rec); err != nil {
			return err
		}
		out.rec.show(from, rec.steps)
	}
	for i, effect := range effects {
		f := orderedEffect{
			Effect: effect, turn: p.order.of(effect.Rule()), by: t.by,
			subjects: effect.Subjects(), shown: effect.Subjects(), secret: secret,
		}
		switch {
		case !secret:
			f.hiding = effect
		case len(made) == len(effects) && made[i].Rule() == effect.Rule():
			f.hiding, f.shown = made[i], made[i].Subjects()
		default:
			f.shown = hiddenSelection()
		}
		out.effects = append(out.effects, f)
	}
	return nil
}

// hiddenSelection stands for a selection of which nothing may be shown.
func hiddenSelection() engine.Selection {
	return engine.Selection{Kind: engine.HiddenValue, Namespace: engine.HiddenValue, Name: engine.HiddenValue}
}

// named returns the effects of a program because of a trigger. A panic is a step.
func named(ctx context.Context, t engine.Target, p propagation, w *engine.World, s engine.Sink) (effects []engine.Effect, err error) {
	_, err = guarded(engine.RuleRef{Policy: "policies"}, t, s, func() (*unstructured.Unstructured, error) {
		effects, err = p.Effects(ctx, t, w, s)
		return t.Object, err
	})
	return effects, err
}

// keep stores the effects of one trigger, and its steps. It is called for one
// trigger after the other, in source order.
func (e *Evaluation) keep(t *triggered) error {
	for i := range t.effects {
		t.effects[i].trigger = e.effects.triggers
		e.effects.add(&t.effects[i])
	}
	e.effects.triggers++
	e.reaches.note(t)
	if (len(t.rec.steps) > 0 || len(t.rec.notMatched) > 0) && e.options.chosen(t.key) {
		e.triggers[t.key.Named()] = t.rec
	}
	return nil
}

// addTriggerSteps adds to an object's Change what the first pass found: what the
// object did, or failed to do, as a trigger and, if the run keeps reasons, why rules
// that other objects trigger do not change it.
func (e *Evaluation) addTriggerSteps(c *engine.Change, acting []*orderedEffect) {
	own := len(c.Steps)
	e.reportTrigger(c)
	unreached := e.reaches.unreached(c, slices.DeleteFunc(acting, func(f *orderedEffect) bool {
		return !f.selects(c.Before) && !f.selects(c.After)
	}))
	if len(unreached) == 0 {
		return
	}
	for _, one := range both(c) {
		one.Steps = append(one.Steps, unreached...)
		slices.SortStableFunc(one.Steps[own:], e.reaches.byRank)
	}
}

// both are a change and, where there is one, the change as it may be shown.
func both(c *engine.Change) []*engine.Change {
	if c.Shown == nil {
		return []*engine.Change{c}
	}
	return []*engine.Change{c, c.Shown}
}

// reportTrigger adds to an object's Change what it did, or failed to do, as a trigger.
// That it does not match as a trigger is left out for a rule that another trigger
// made change it.
func (e *Evaluation) reportTrigger(c *engine.Change) {
	rec, ok := e.triggers[c.Subject.Named()]
	if !ok {
		return
	}
	delete(e.triggers, c.Subject.Named())
	acted := map[engine.RuleRef]bool{}
	for i := range c.Steps {
		if c.Steps[i].Outcome != engine.NotMatched {
			acted[c.Steps[i].Rule] = true
		}
	}
	shown := rec.shownSteps()
	if shown != nil && c.Shown == nil {
		out := *c
		out.Steps, c.Shown = slices.Clone(c.Steps), &out
	}
	for i := range rec.steps {
		s := rec.steps[i]
		if s.Outcome == engine.NotMatched && acted[s.Rule] {
			continue
		}
		c.Steps = append(c.Steps, s)
		if c.Shown != nil {
			if shown != nil {
				s = shown[i]
			}
			c.Shown.Steps = append(c.Shown.Steps, s)
		}
	}
	for _, r := range rec.notMatched {
		if !acted[r] {
			c.NotMatched = append(c.NotMatched, r)
		}
	}
	if c.Shown != nil {
		c.Shown.NotMatched = c.NotMatched
	}
}

// runLeftTriggers reports triggers that the second pass did not see again.
func (e *Evaluation) runLeftTriggers(emit func(*engine.Change) error) error {
	keys := make([]engine.ObjectKey, 0, len(e.triggers))
	for k := range e.triggers {
		keys = append(keys, k)
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

// effectIndex finds the effects that act on an object. Most name one object
// plainly; the others are tried on every object of their kind.
type effectIndex struct {
	all       []*orderedEffect
	triggers  int
	named     map[engine.ObjectKey][]*orderedEffect
	byKind    map[string][]*orderedEffect // by kind; "" holds wildcard kinds
	byTrigger map[int][]*orderedEffect    // after indexTriggers
}

func (x *effectIndex) add(f *orderedEffect) { x.all = append(x.all, f) }

// sort brings the effects into policy, rule, trigger order and indexes them.
func (x *effectIndex) sort() {
	slices.SortStableFunc(x.all, rank)
	x.named = map[engine.ObjectKey][]*orderedEffect{}
	x.byKind = map[string][]*orderedEffect{}
	for _, f := range x.all {
		s := f.subjects
		switch {
		case s.Exact():
			k := subjectKey(s).Named()
			x.named[k] = append(x.named[k], f)
		case s.ExactKind():
			x.byKind[s.Kind] = append(x.byKind[s.Kind], f)
		default:
			x.byKind[""] = append(x.byKind[""], f)
		}
	}
}

// indexTriggers makes the effects known by their triggers.
func (x *effectIndex) indexTriggers() {
	x.byTrigger = map[int][]*orderedEffect{}
	for _, f := range x.all {
		x.byTrigger[f.trigger] = append(x.byTrigger[f.trigger], f)
	}
}

// of lists the effects of one rule because of one trigger.
func (x *effectIndex) of(u unit) []*orderedEffect {
	var out []*orderedEffect
	for _, f := range x.byTrigger[u.trigger] {
		if f.turn == u.turn {
			out = append(out, f)
		}
	}
	return out
}

func rank(a, b *orderedEffect) int {
	return cmp.Or(a.turn.compare(b.turn), cmp.Compare(a.trigger, b.trigger))
}

// on lists the effects that may act on an object, in order: rules before them decide whether it has the labels
// that they select. An object that was read through a subresource is known by its key alone.
func (x *effectIndex) on(key engine.ObjectKey, u *unstructured.Unstructured) []*orderedEffect {
	if len(x.all) == 0 || u == nil {
		return nil
	}
	out := slices.Clone(x.named[key.Named()])
	if key.Subresource == "" {
		for _, kind := range []string{u.GetKind(), ""} {
			for _, f := range x.byKind[kind] {
				if f.mayActOn(key, u) {
					out = append(out, f)
				}
			}
		}
	}
	slices.SortStableFunc(out, rank)
	return out
}

// subjectKey is the key of the one object that an exact selection names.
func subjectKey(s engine.Selection) engine.ObjectKey {
	return engine.ObjectKey{
		GroupKind: schema.GroupKind{Group: s.Group, Kind: s.Kind}, Version: s.Version,
		Namespace: s.Namespace, Name: s.Name, Subresource: s.Subresource,
	}
}

// subjects are what several effects share: one selection, read once.
type subjects struct {
	engine.Selection
	effects []*orderedEffect
	named   []engine.ObjectKey // the subresources that a pattern of names turned out to mean
}

// under returns a context for the requests for the subjects, which a Secret may have chosen.
func (s *subjects) under(ctx context.Context) context.Context {
	ctx, _ = engine.WatchSecrets(ctx)
	if slices.ContainsFunc(s.effects, func(f *orderedEffect) bool { return f.secret }) {
		engine.NoteSecret(ctx)
	}
	return ctx
}

// bySubjects groups the effects by the selection that they act on, in order.
func (x *effectIndex) bySubjects() []*subjects {
	type id struct { // every field of a selection, with its labels as text
		engine.Selection
		labels string
	}
	var out []*subjects
	known := map[id]*subjects{}
	for _, f := range x.all {
		k := id{f.subjects, fmt.Sprint(f.subjects.Labels)}
		k.Labels = nil
		if known[k] == nil {
			known[k] = &subjects{Selection: f.subjects}
			out = append(out, known[k])
		}
		known[k].effects = append(known[k].effects, f)
	}
	return out
}

// runUnvisited evaluates the effects' subjects that did not stream by.
func (e *Evaluation) runUnvisited(ctx context.Context, visited map[engine.ObjectKey]bool, emit func(*engine.Change) error) error {
	once := func(c *engine.Change) error {
		if visited[c.Subject.Named()] {
			return nil
		}
		visited[c.Subject.Named()] = true
		e.addTriggerSteps(c, e.effects.on(c.Subject, c.Before))
		return emit(c)
	}
	groups := e.effects.bySubjects()
	for _, s := range groups {
		if s.Subresource != "" && !s.Exact() {
			if err := e.nameSubresources(ctx, s, once); err != nil {
				return err
			}
		}
	}
	for _, s := range groups {
		if err := e.runSubjects(ctx, s, once); err != nil {
			return err
		}
	}
	return nil
}

// nameSubresources finds the objects whose subresource a selection means: a
// subresource cannot be listed, and does not have its object's labels.
func (e *Evaluation) nameSubresources(ctx context.Context, s *subjects, emit func(*engine.Change) error) error {
	ctx = s.under(ctx)
	objects := s.Selection
	objects.Subresource = ""
	for u, err := range e.reader.List(ctx, objects) {
		if err != nil {
			return e.missing(ctx, s, err, emit)
		}
		k := engine.KeyOf(u)
		k.Subresource = s.Subresource
		s.named = append(s.named, k)
		e.effects.named[k.Named()] = append(e.effects.named[k.Named()], s.effects...)
	}
	return nil
}

// runSubjects reads what a selection names and evaluates it. What cannot be read
// is a failed step of every rule that wanted it.
func (e *Evaluation) runSubjects(ctx context.Context, s *subjects, emit func(*engine.Change) error) error {
	ctx = s.under(ctx)
	keys := s.named
	if s.Exact() {
		keys = []engine.ObjectKey{subjectKey(s.Selection)}
	}
	for _, k := range keys {
		u, err := e.reader.Get(ctx, k)
		if err == nil {
			err = e.runSubject(ctx, k, u, emit)
		} else {
			err = e.missing(ctx, s, err, emit)
		}
		if err != nil {
			return err
		}
	}
	if s.Exact() || s.Subresource != "" {
		return nil
	}
	for u, err := range e.reader.List(ctx, s.Selection) {
		if err != nil {
			return e.missing(ctx, s, err, emit)
		}
		if err := e.runSubject(ctx, engine.KeyOf(u), u, emit); err != nil {
			return err
		}
	}
	return nil
}

func (e *Evaluation) runSubject(ctx context.Context, k engine.ObjectKey, u *unstructured.Unstructured, emit func(*engine.Change) error) error {
	k.UID = u.GetUID()
	t := engine.Target{Key: k, Object: u, Request: e.options.Request}
	if e.world.Origin != nil {
		t.Origin = e.world.Origin(k)
	}
	if t.Request.Operation != engine.OperationCreate {
		t.OldObject = u
	}
	if ns := u.GetNamespace(); ns != "" {
		// A Namespace that cannot be read leaves t.Namespace nil, which rules that
		// ask for its labels report by themselves.
		t.Namespace, _ = e.world.ReadNamespace(ctx, ns)
	}
	c, err := e.reviewed(ctx, t, false)
	if err != nil {
		return err
	}
	return emit(c)
}

// missing reports a subject that does not exist, or may not be read, as a failed
// step of each rule that wanted to change it.
func (e *Evaluation) missing(ctx context.Context, s *subjects, cause error, emit func(*engine.Change) error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c := &engine.Change{Subject: subjectKey(s.Selection)}
	shown := &engine.Change{Subject: subjectKey(s.effects[0].shown)}
	for _, f := range s.effects {
		err := fmt.Errorf("reading the target: %w", cause)
		if apierrors.IsNotFound(cause) {
			err = fmt.Errorf("the target does not exist: %w", cause)
		}
		step := engine.Step{Rule: f.Rule(), Subject: c.Subject, Trigger: f.Trigger(), Outcome: engine.Failed, Err: err}
		c.Steps = append(c.Steps, step)
		if step.Subject = shown.Subject; f.secret {
			step.Err, c.Shown = engine.ErrHidden, shown
		}
		shown.Steps = append(shown.Steps, step)
	}
	return emit(c)
}
