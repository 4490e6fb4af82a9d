package evaluation

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// asCreated returns an evaluation of the same programs as if all objects were created now. It is nil where
// the user chose the operation, or no rule asks for it. What it evaluates is only shown, beside what an
// update does.
func (e *Evaluation) asCreated() *Evaluation {
	if !e.options.Request.Open() {
		return nil
	}
	e.asking = map[engine.RuleRef][]engine.Selection{}
	for _, p := range e.programs {
		for _, d := range p.Describe() {
			if d.AsksOperation {
				e.asking[d.Rule] = append(e.asking[d.Rule], d.Matches...)
			}
		}
	}
	if len(e.asking) == 0 {
		return nil
	}
	out := &Evaluation{
		programs: e.programs, reader: e.reader, world: e.world, options: e.options,
		operation: engine.OperationCreate,
		triggers:  map[engine.ObjectKey]*triggered{}, reaching: e.reaching,
	}
	out.options.Reasons, out.options.Review, out.options.Request.Operation = false, nil, engine.OperationCreate
	return out
}

// lanes are the evaluation itself, and that of creations where there is one.
func (e *Evaluation) lanes() []*Evaluation {
	if e.created == nil {
		return []*Evaluation{e}
	}
	return []*Evaluation{e, e.created}
}

// both evaluates an object and, where its request is left open and the update holds back a rule that asks for
// the operation, its creation.
func (e *Evaluation) both(ctx context.Context, t engine.Target, scoped bool) (*engine.Change, error) {
	c, err := e.Evaluate(ctx, t, scoped)
	if err == nil && e.created != nil && t.Request.Open() &&
		(e.holdsBack(c, &t) || len(e.created.effects.actingOn(t.Key, t.Object)) > 0) {
		c.Created, err = e.created.Evaluate(ctx, t, scoped)
	}
	return c, err
}

// holdsBack reports whether a rule that asks for the operation may match an object, and did not run as it was
// updated.
func (e *Evaluation) holdsBack(c *engine.Change, t *engine.Target) bool {
	ran := map[engine.RuleRef]bool{}
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Trigger == (engine.ObjectKey{}) && s.Outcome != engine.NotMatched && s.Outcome != engine.Skipped {
			ran[s.Rule.WithoutParameter()] = true
		}
	}
	for rule, matches := range e.asking {
		if !ran[rule] && covers(matches, t) {
			return true
		}
	}
	return false
}

// acting are the effects on an object, of all lanes.
func (e *Evaluation) acting(key engine.ObjectKey, u *unstructured.Unstructured) (out []*orderedEffect) {
	for _, l := range e.lanes() {
		out = append(out, l.effects.actingOn(key, u)...)
	}
	return out
}

// differently reduces the Created of a change to what the update does not do as well, where it runs a rule
// that the update holds back: that a rule of both writes another value is no news of an object that is there.
// Why a creation does not run a rule either is added to the reason of the change itself.
func (e *Evaluation) differently(c *engine.Change) {
	created := c.Created
	if created == nil {
		return
	}
	var wanted, rest []int // fields
	for i := range created.Fields {
		f := &created.Fields[i]
		if slices.ContainsFunc(c.Fields, func(u engine.FieldChange) bool {
			return u.Kind == f.Kind && u.Path.Equals(f.Path) && diff.Same(u.To, f.To)
		}) {
			rest = append(rest, i)
		} else {
			wanted = append(wanted, i)
		}
	}
	var kept []int // steps
	only := false  // one of them is of a rule that the update holds back
	for i := range created.Steps {
		s := &created.Steps[i]
		writes := slices.ContainsFunc(wanted, func(i int) bool { return created.Fields[i].Rule == s.Rule })
		switch at := heldBack(c, s); {
		case s.Outcome == engine.Changed && writes, s.Outcome.Incomplete() && at != "" &&
			e.asking[s.Rule.WithoutParameter()] != nil:
			kept, only = append(kept, i), only || at != ""
		case at == engine.NotMatched && s.Outcome == engine.Skipped:
			addReasonOfCreation(c, s)
		}
	}
	if !only {
		c.Created = nil
		return
	}
	if !e.options.Reasons {
		for _, i := range kept { // of which the Created says more
			s := &created.Steps[i]
			for _, one := range states(c) {
				one.Steps = slices.DeleteFunc(slices.Clone(one.Steps), func(u engine.Step) bool {
					return u.Rule == s.Rule && u.Trigger == s.Trigger && u.Outcome == engine.Skipped
				})
			}
		}
	}
	for _, one := range states(created) {
		one.AsCreated, one.Steps, one.Asked = true, pick(one.Steps, kept), nil
		for i := range one.Steps {
			one.Steps[i].AsCreated = true
		}
		fields, others := pick(one.Fields, wanted), pick(one.Fields, rest)
		if one.Fields = fields; len(others) > 0 && one.Before != nil {
			one.After = &unstructured.Unstructured{Object: diff.Subset(one.Before.Object,
				one.After.Object, fields, others)}
		}
	}
}

// heldBack returns the outcome with which the rule of a step did not run when the object was updated; empty
// where it did. Of a trigger that no rule held back there is no step.
func heldBack(c *engine.Change, s *engine.Step) engine.Outcome {
	var at engine.Outcome
	if s.Trigger != c.Subject || slices.Contains(c.Asked, s.Rule) { // one without a step did not match
		at = engine.NotMatched
	}
	for i := range c.Steps {
		switch u := &c.Steps[i]; {
		case u.Rule != s.Rule || u.Trigger != s.Trigger:
		case u.Outcome != engine.NotMatched && u.Outcome != engine.Skipped:
			return ""
		case at != engine.Skipped:
			at = u.Outcome
		}
	}
	return at
}

// addReasonOfCreation adds to the reason why a rule does not match an update what holds it back from a
// creation.
func addReasonOfCreation(c *engine.Change, s *engine.Step) {
	for i := range c.Steps {
		u := &c.Steps[i]
		if u.Rule != s.Rule || u.Trigger != s.Trigger || u.Outcome != engine.NotMatched || u.Err == nil {
			continue
		}
		u.Err = fmt.Errorf("%w; and as if created: %v", u.Err, s.Err) //nolint:errorlint // the first is the outcome
		u.Confidential, u.Writes = s.Confidential, s.Writes
		if c.Shown != nil {
			c.Shown.Steps[i] = shownStep(*u, &view{}, &view{})
		}
	}
}

// pick returns the elements of a list with the given places.
func pick[T any](all []T, places []int) []T {
	out := make([]T, len(places))
	for i, at := range places {
		out[i] = all[at]
	}
	return out
}
