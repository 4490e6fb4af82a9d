package evaluation

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
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
	secret   bool             // a Secret may have named its subjects
	repeats  bool             // the rule would go on changing its own trigger
	endless  error            // why it does nothing; nil where it does
}

// unit is all that one rule does because of one trigger.
type unit struct {
	turn
	trigger int
}

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
	chosen   bool   // it is in the scope
	resource string // of the object; known where reasons are wanted
	effects  []orderedEffect
	rec      *recorder
}

// triggering returns what triggers the rules of a propagating program that may change an object of
// the scope. A run that keeps reasons also wants those of the others, and what the objects of the
// scope are as triggers.
func (e *Evaluation) triggering(p engine.Program) []engine.Selection {
	var out []engine.Selection
	for _, d := range described(p) {
		switch {
		case d.Existing != engine.ByTrigger:
			continue
		case len(d.Targets) == 0 || slices.ContainsFunc(d.Targets, func(s engine.Selection) bool { return len(e.narrow(s)) > 0 }):
			e.reaching[d.Rule] = true
		case !e.options.Reasons:
			continue
		}
		out = append(out, d.Matches...)
	}
	if e.options.Reasons {
		for _, s := range p.Selections() {
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

// effectsOf adds the effects of one program.
func (e *Evaluation) effectsOf(ctx context.Context, t state, p propagation, out *triggered) error {
	ctx, _ = engine.WatchSecrets(ctx)
	if t.target.HoldsSecrets() {
		engine.NoteSecret(ctx)
	}
	from := len(out.rec.steps)
	effects, err := named(ctx, t.target, p, e.world, out.rec)
	if err != nil {
		return err
	}
	for i := range out.rec.steps[from:] {
		s := &out.rec.steps[from+i]
		s.Confidential = s.Confidential || quotes(&t.target, s)
	}
	for _, effect := range effects {
		f := orderedEffect{Effect: effect, turn: p.order.of(effect.Rule()), by: t.by, subjects: effect.Subjects()}
		if named, ok := effect.(interface{ Confidential() bool }); ok {
			f.secret = named.Confidential()
		}
		out.effects = append(out.effects, f)
	}
	return nil
}

// hiddenSubject stands for one that a Secret may have named.
func hiddenSubject() engine.ObjectKey {
	return engine.ObjectKey{
		GroupKind: schema.GroupKind{Kind: engine.HiddenValue}, Version: engine.HiddenValue, Namespace: engine.HiddenValue, Name: engine.HiddenValue,
	}
}

// named returns the effects of a program because of a trigger. A panic is a step.
func named(ctx context.Context, t engine.Target, p propagation, w *engine.World, s engine.Sink) (effects []engine.Effect, err error) {
	_, err = guarded(allPolicies, t, s, func() (*unstructured.Unstructured, error) {
		effects, err = p.Effects(ctx, t, w, s)
		return t.Object, err
	})
	return effects, err
}

// addInScope stores an effect that may act in the scope.
func (e *Evaluation) addInScope(f *orderedEffect) {
	if e.options.Reasons || len(e.narrow(f.subjects)) > 0 {
		e.effects.add(f)
	}
}

// maxEffects is how many effects are kept, each of which takes about 600 bytes.
const maxEffects = 1_000_000

// keep stores the effects of one trigger that may act in the scope, and its steps. It is called
// for one trigger after the other, in source order.
func (e *Evaluation) keep(t *triggered) error {
	if len(e.effects.all)+len(t.effects) > maxEffects {
		return fmt.Errorf("%s triggers too much: %w; evaluate these rules with fewer triggers or targets, or use wildcards in their targets",
			t.key, &limit.Error{What: "targets that rules name for all of their triggers", Max: maxEffects})
	}
	for i := range t.effects {
		f := &t.effects[i]
		f.trigger = e.effects.triggers
		e.addInScope(f)
	}
	e.effects.triggers++
	e.reaches.note(t)
	if !e.options.Scope.InShard(t.key) {
		return nil // its own shard reports it
	}
	failed := slices.ContainsFunc(t.rec.steps, func(s engine.Step) bool { return s.Outcome.Incomplete() && e.reaching[s.Rule] })
	if t.chosen && (len(t.rec.steps) > 0 || len(t.rec.notMatched) > 0) || failed {
		if slices.Equal(t.rec.notMatched, e.unmet) {
			t.rec.notMatched = e.unmet
		}
		e.unmet = t.rec.notMatched
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
	for i := range rec.steps {
		if s := &rec.steps[i]; s.Outcome != engine.NotMatched || !acted[s.Rule] {
			addStep(c, s)
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

// runLeftTriggers reports triggers on which a rule failed and that the second pass did not see
// again: what the rule would change is not known.
func (e *Evaluation) runLeftTriggers(emit func(*engine.Change) error) error {
	keys := make([]engine.ObjectKey, 0, len(e.triggers))
	for k, rec := range e.triggers {
		if e.options.Scope.InShard(k) && slices.ContainsFunc(rec.steps, func(s engine.Step) bool { return s.Outcome.Incomplete() }) {
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

// single reports whether the selection names one object, whose labels may have to be compared.
func (s *subjects) single() bool {
	one := s.Selection
	if one.Namespace != "" {
		one.Labels = nil
	}
	return one.Exact()
}

// bySubjects groups the effects by the selections that they act on within the scope, in order.
func (e *Evaluation) bySubjects() []*subjects {
	type id struct { // every field of a selection, with its labels as text
		engine.Selection
		labels string
	}
	var out []*subjects
	known := map[id]*subjects{}
	for _, f := range e.effects.all {
		for _, s := range e.narrow(f.subjects) {
			if !e.options.Scope.ShardMeets(s) {
				continue
			}
			k := id{s, fmt.Sprint(s.Labels)}
			k.Labels = nil
			if known[k] == nil {
				known[k] = &subjects{Selection: s}
				out = append(out, known[k])
			}
			known[k].effects = append(known[k].effects, f)
		}
	}
	return out
}

// unvisited evaluates the effects' subjects in the scope that did not stream by.
type unvisited struct {
	*Evaluation
	visited keys
	emit    func(*engine.Change) error
	areas   areas
}

func (e unvisited) run(ctx context.Context) error {
	groups := e.bySubjects()
	for _, s := range groups {
		if e.byObject(s) {
			if err := e.nameSubresources(ctx, s); err != nil {
				return err
			}
		}
	}
	for _, s := range groups {
		e.count(s)
	}
	var read []*namedSubject
	for _, s := range groups {
		for _, k := range e.keys(s) {
			if read = append(read, &namedSubject{subjects: s, key: k}); len(read) == pageSize {
				if err := e.runNamed(ctx, read); err != nil {
					return err
				}
				read = nil
			}
		}
		if s.single() || s.Subresource != "" {
			continue
		}
		if err := e.runNamed(ctx, read); err != nil {
			return err
		}
		read = nil
		if err := e.runListed(s.under(ctx), s); err != nil {
			return err
		}
	}
	return e.runNamed(ctx, read)
}

// report hands over what became of a subject, once.
func (e unvisited) report(c *engine.Change) error {
	if !e.visited.add(c.Subject) {
		return nil
	}
	e.addTriggerSteps(c, e.effects.on(c.Subject, c.Before))
	return e.Evaluation.emit(c, e.emit)
}

// byObject reports whether a selection means the subresources of objects that have to be found
// first: a subresource cannot be listed, and does not have its object's labels and fields.
func (e unvisited) byObject(s *subjects) bool {
	return s.Subresource != "" && (!s.Exact() || e.options.Scope != nil && e.options.Scope.Labels != nil)
}

// nameSubresources finds the objects whose subresource a selection means.
func (e unvisited) nameSubresources(ctx context.Context, s *subjects) error {
	ctx = s.under(ctx)
	objects := s.Selection
	objects.Subresource = ""
	for u, err := range e.reader.List(ctx, objects) {
		if err != nil {
			return e.missing(ctx, s, err)
		}
		k := engine.KeyOf(u)
		if !e.options.Scope.Includes(k, u.GetLabels()) || !e.options.Scope.InShard(k) {
			continue
		}
		k.Subresource = s.Subresource
		s.named = append(s.named, k)
		for _, f := range s.effects {
			if acting := e.effects.named[k.Named()]; !slices.Contains(acting, f) {
				e.effects.named[k.Named()] = append(acting, f)
			}
		}
	}
	return nil
}

// keys are the objects that a selection names, and that are read one by one.
func (e unvisited) keys(s *subjects) []engine.ObjectKey {
	if s.single() && !e.byObject(s) {
		return []engine.ObjectKey{subjectKey(s.Selection)}
	}
	return s.named
}

// runListed evaluates the subjects that a selection lists, as a run does the objects of its source: several side by
// side, while the next ones are read.
func (e unvisited) runListed(ctx context.Context, s *subjects) error {
	var broken error
	work := job[*engine.Change]{
		workers: e.options.Workers,
		do:      e.evaluate,
		note:    e.note,
		review:  e.review,
		take:    e.take,
	}
	err := work.run(ctx, func(yield func(engine.Page, error) bool) {
		for page, err := range engine.ReadAhead(ctx, func(ctx context.Context) iter.Seq2[subjectPage, error] { return e.listPages(ctx, s) }) {
			if broken = err; err != nil || !yield(page, nil) {
				return
			}
		}
	})
	if err == nil && broken != nil {
		err = e.missing(ctx, s, broken)
	}
	return err
}

// runSubject evaluates a subject that was read by itself.
func (e unvisited) runSubject(ctx context.Context, s *subjects, k engine.ObjectKey, u *unstructured.Unstructured) error {
	if !e.means(s, k, u) {
		return nil
	}
	c, err := e.evaluate(ctx, e.target(k, u))
	if err != nil {
		return err
	}
	e.note(c)
	if err := e.review(ctx, c); err != nil {
		return err
	}
	return e.take(c)
}

// take reports what evaluate returned.
func (e unvisited) take(c *engine.Change) error {
	if !e.visited.has(c.Subject) && !e.options.Scope.InPercent(c.Subject) {
		e.leaveOut(e.visited, c.Subject)
		return nil
	}
	return e.report(c)
}

// subjectPage is some of the subjects of a selection.
type subjectPage []engine.Target

// Len implements engine.Page.
func (p subjectPage) Len() int { return len(p) }

// Target implements engine.Page.
func (p subjectPage) Target(i int) (engine.Target, error) { return p[i], nil }

// pageSize is how many objects are kept to be evaluated side by side.
const pageSize = 100

// listPages lists what a selection means within the scope.
func (e unvisited) listPages(ctx context.Context, s *subjects) iter.Seq2[subjectPage, error] {
	return func(yield func(subjectPage, error) bool) {
		var page subjectPage
		for u, err := range e.reader.List(ctx, s.Selection) {
			if err != nil {
				if len(page) == 0 || yield(page, nil) {
					yield(nil, err)
				}
				return
			}
			if k := engine.KeyOf(u); e.means(s, k, u) {
				if page == nil {
					page = make(subjectPage, 0, pageSize)
				}
				page = append(page, e.target(k, u))
			}
			if len(page) == pageSize {
				if !yield(page, nil) {
					return
				}
				page = nil
			}
		}
		if len(page) > 0 {
			yield(page, nil)
		}
	}
}

// means reports whether an object is one of the subjects, in the scope; that of a subresource is decided already.
func (e unvisited) means(s *subjects, k engine.ObjectKey, u *unstructured.Unstructured) bool {
	return k.Subresource != "" || s.Matches(u) && e.options.Scope.Includes(k, u.GetLabels()) && e.options.Scope.InShard(k)
}

// target returns a subject that was read.
func (e unvisited) target(k engine.ObjectKey, u *unstructured.Unstructured) engine.Target {
	k.UID = u.GetUID()
	t := engine.Target{Key: k, Object: u, Request: e.options.Request}
	if e.world.Origin != nil {
		t.Origin = e.world.Origin(k)
	}
	if t.Request.Operation != engine.OperationCreate {
		t.OldObject = u
	}
	return t
}

// evaluate returns what becomes of a subject. There is nothing but its key where it was visited, or is beyond
// the percentage of the scope.
func (e unvisited) evaluate(ctx context.Context, t engine.Target) (*engine.Change, error) {
	if e.visited.has(t.Key) || !e.options.Scope.InPercent(t.Key) {
		return &engine.Change{Subject: t.Key}, nil
	}
	if ns := t.Object.GetNamespace(); ns != "" {
		// A Namespace that cannot be read leaves t.Namespace nil, which rules that
		// ask for its labels report by themselves.
		t.Namespace, _ = e.world.ReadNamespace(ctx, ns)
	}
	return e.Evaluate(ctx, t, false)
}

// missing reports a subject that does not exist, or may not be read, as a failed
// step of each rule that wanted to change it. That there is nothing of what a pattern stands for is
// no failure, but one object that the user typed should be there.
func (e unvisited) missing(ctx context.Context, s *subjects, cause error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c := &engine.Change{Subject: subjectKey(s.Selection)}
	for _, f := range s.effects {
		err := fmt.Errorf("reading the target: %w", cause)
		if apierrors.IsNotFound(cause) {
			if !f.subjects.Exact() {
				continue
			}
			err = fmt.Errorf("the target does not exist: %w", cause)
		}
		addStep(c, &engine.Step{Rule: f.Rule(), Trigger: f.Trigger(), Outcome: engine.Failed, Err: brief(err), Confidential: f.secret})
	}
	if s.effects[0].secret && c.Shown != nil {
		c.Shown.Subject = hiddenSubject()
	}
	if len(c.Steps) > 0 {
		return e.report(c)
	}
	if e.options.Scope.Names(c.Subject) {
		e.isUnreadable(&engine.UnreadableError{What: c.Subject.String(), Err: cause})
	}
	return nil
}
