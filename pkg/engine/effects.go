package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// propagation is a Propagator and the place of its rules in the run.
type propagation struct {
	Propagator
	order ruleOrder
}

// ruleOrder ranks rules by program, then by their place in it.
type ruleOrder struct {
	program int
	rules   map[RuleRef]int
}

func newRuleOrder(program int, rules []RuleRef) ruleOrder {
	o := ruleOrder{program: program, rules: make(map[RuleRef]int, len(rules))}
	for i, r := range rules {
		o.rules[r] = i
	}
	return o
}

// orderedEffect is an Effect and its rank: program, rule, trigger.
type orderedEffect struct {
	Effect
	program, rule, trigger int
	subjects               Selection
}

// triggered is what one object set off.
type triggered struct {
	key     ObjectKey
	effects []orderedEffect
	rec     *recorder
}

func (e *Evaluation) trigger(ctx context.Context, t Target, programs []propagation) (*triggered, error) {
	out := &triggered{key: t.Key, rec: &recorder{reasons: e.options.Reasons}}
	for _, p := range programs {
		_, err := guarded(RuleRef{Policy: "policies"}, t, out.rec, func() (*unstructured.Unstructured, error) {
			effects, err := p.Effects(ctx, t, e.world, out.rec)
			for _, effect := range effects {
				out.effects = append(out.effects, orderedEffect{
					Effect: effect, program: p.order.program, rule: p.order.rules[effect.Rule()], subjects: effect.Subjects(),
				})
			}
			return t.Object, err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// keep files the effects of one trigger, and what it has to report. Triggers
// come here one after the other, in source order.
func (e *Evaluation) keep(t *triggered) error {
	for i := range t.effects {
		t.effects[i].trigger = e.effects.triggers
		e.effects.add(&t.effects[i])
	}
	e.effects.triggers++
	if len(t.rec.steps) > 0 || len(t.rec.notMatched) > 0 {
		e.triggers[t.key.Named()] = t.rec
	}
	return nil
}

// reportTrigger adds to an object's Change what it did, or failed to do, as a trigger.
func (e *Evaluation) reportTrigger(c *Change) {
	rec, ok := e.triggers[c.Subject.Named()]
	if !ok {
		return
	}
	delete(e.triggers, c.Subject.Named())
	c.Steps = append(c.Steps, rec.steps...)
	c.NotMatched = append(c.NotMatched, rec.notMatched...)
}

// runLeftTriggers reports triggers that the second pass did not see again.
func (e *Evaluation) runLeftTriggers(emit func(*Change) error) error {
	keys := make([]ObjectKey, 0, len(e.triggers))
	for k := range e.triggers {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b ObjectKey) int { return cmp.Compare(a.String(), b.String()) })
	for _, k := range keys {
		c := &Change{Subject: k}
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
	all      []*orderedEffect
	triggers int
	named    map[ObjectKey][]*orderedEffect
	byKind   map[string][]*orderedEffect // by kind; "" holds wildcard kinds
}

func (x *effectIndex) add(f *orderedEffect) { x.all = append(x.all, f) }

// sort brings the effects into policy, rule, trigger order and indexes them.
func (x *effectIndex) sort() {
	slices.SortStableFunc(x.all, rank)
	x.named = map[ObjectKey][]*orderedEffect{}
	x.byKind = map[string][]*orderedEffect{}
	for _, f := range x.all {
		s := f.subjects
		switch {
		case s.Exact():
			k := subjectKey(s).Named()
			x.named[k] = append(x.named[k], f)
		case s.exactKind():
			x.byKind[s.Kind] = append(x.byKind[s.Kind], f)
		default:
			x.byKind[""] = append(x.byKind[""], f)
		}
	}
}

func rank(a, b *orderedEffect) int {
	return cmp.Or(cmp.Compare(a.program, b.program), cmp.Compare(a.rule, b.rule), cmp.Compare(a.trigger, b.trigger))
}

// on lists the effects that act on the object, in order.
func (x *effectIndex) on(u *unstructured.Unstructured) []*orderedEffect {
	if len(x.all) == 0 || u == nil {
		return nil
	}
	var out []*orderedEffect
	for _, candidates := range [][]*orderedEffect{x.named[KeyOf(u).Named()], x.byKind[u.GetKind()], x.byKind[""]} {
		for _, f := range candidates {
			if f.subjects.Matches(u) {
				out = append(out, f)
			}
		}
	}
	slices.SortStableFunc(out, rank)
	return out
}

// subjectKey is the key of the one object that an exact selection names.
func subjectKey(s Selection) ObjectKey {
	return ObjectKey{
		GroupKind: schema.GroupKind{Group: s.Group, Kind: s.Kind}, Version: s.Version,
		Namespace: s.Namespace, Name: s.Name, Subresource: s.Subresource,
	}
}

// runUnvisited evaluates the effects' subjects that did not stream by. Each
// selection is read once, however many effects share it.
func (e *Evaluation) runUnvisited(ctx context.Context, visited map[ObjectKey]bool, emit func(*Change) error) error {
	done := map[string]bool{}
	for _, f := range e.effects.all {
		s := f.subjects
		id := fmt.Sprintf("%s|%s", subjectKey(s).GroupVersionKind(), subjectKey(s)) + s.Labels.String()
		if done[id] {
			continue
		}
		done[id] = true
		err := e.runSubjects(ctx, s, func(c *Change) error {
			if visited[c.Subject.Named()] {
				return nil
			}
			visited[c.Subject.Named()] = true
			return emit(c)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// runSubjects reads what a selection names and evaluates it. What cannot be read
// is a failed step of every rule that wanted it.
func (e *Evaluation) runSubjects(ctx context.Context, s Selection, emit func(*Change) error) error {
	if !s.Exact() {
		for u, err := range e.world.Reader.List(ctx, s) {
			if err != nil {
				return e.missing(ctx, s, err, emit)
			}
			if err := e.runSubject(ctx, u, s.Subresource, emit); err != nil {
				return err
			}
		}
		return nil
	}
	u, err := e.world.Reader.Get(ctx, subjectKey(s))
	if err != nil {
		return e.missing(ctx, s, err, emit)
	}
	return e.runSubject(ctx, u, s.Subresource, emit)
}

func (e *Evaluation) runSubject(ctx context.Context, u *unstructured.Unstructured, subresource string, emit func(*Change) error) error {
	t := Target{Key: KeyOf(u), Object: u, Request: e.options.Request}
	t.Key.Subresource = subresource
	if t.Request.Operation != OperationCreate {
		t.OldObject = u
	}
	if ns := u.GetNamespace(); ns != "" {
		// A Namespace that cannot be read leaves t.Namespace nil, which rules that
		// ask for its labels report by themselves.
		t.Namespace, _ = e.world.Reader.Get(ctx, ObjectKey{GroupKind: schema.GroupKind{Kind: "Namespace"}, Version: "v1", Name: ns})
	}
	c, err := e.Evaluate(ctx, t, false)
	if err != nil {
		return err
	}
	return emit(c)
}

// missing reports a subject that is not there, or may not be read, as a failed
// step of each rule that wanted to change it.
func (e *Evaluation) missing(ctx context.Context, s Selection, cause error, emit func(*Change) error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c := &Change{Subject: subjectKey(s)}
	for _, f := range e.effects.all {
		if subjectKey(f.subjects) != c.Subject || f.subjects.Labels.String() != s.Labels.String() {
			continue
		}
		err := fmt.Errorf("reading the target: %w", cause)
		if apierrors.IsNotFound(cause) {
			err = fmt.Errorf("the target does not exist: %w", cause)
		}
		c.Steps = append(c.Steps, Step{Rule: f.Rule(), Subject: c.Subject, Trigger: f.Trigger(), Outcome: Failed, Err: err})
	}
	return emit(c)
}
