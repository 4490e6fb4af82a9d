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
// the user chose the operation, or no rule asks for it. Its results are only shown, next to an update's.
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

// lanes returns the evaluation itself, and the one of creations if there is one.
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

// holdsBack reports whether a rule that asks for the operation may match an object, and did not run on its
// update.
func (e *Evaluation) holdsBack(c *engine.Change, t *engine.Target) bool {
	ran := map[engine.RuleRef]bool{}
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.TriggeredBy == nil && s.Outcome != engine.NotMatched && s.Outcome != engine.Skipped {
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

// acting returns the effects on an object, of all lanes.
func (e *Evaluation) acting(key engine.ObjectKey, u *unstructured.Unstructured) (out []*orderedEffect) {
	for _, l := range e.lanes() {
		out = append(out, l.effects.actingOn(key, u)...)
	}
	return out
}

// differently reduces the Created of a change to its differences from the update, where it runs a rule that
// the update holds back: another value by a rule of both does not count. The reasons why a
// creation does not run a rule either are added to the change itself.
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
	only := false  // a step is of a rule that the update holds back
	for i := range created.Steps {
		s := &created.Steps[i]
		writes := slices.ContainsFunc(wanted, func(i int) bool { return created.Fields[i].Rule() == s.Rule })
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
		for _, i := range kept { // the Created says more
			s := &created.Steps[i]
			for _, one := range states(c) {
				one.Steps = slices.DeleteFunc(slices.Clone(one.Steps), func(u engine.Step) bool {
					return u.Rule == s.Rule && u.Trigger() == s.Trigger() && u.Outcome == engine.Skipped
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

// heldBack returns the outcome with which the rule of a step did not run on the update; empty where it ran.
// Without a step, no rule held a trigger back.
func heldBack(c *engine.Change, s *engine.Step) engine.Outcome {
	var at engine.Outcome
	if s.Trigger() != c.Subject || slices.Contains(c.Asked, s.Rule) { // one without a step did not match
		at = engine.NotMatched
	}
	for i := range c.Steps {
		switch u := &c.Steps[i]; {
		case u.Rule != s.Rule || u.Trigger() != s.Trigger():
		case u.Outcome != engine.NotMatched && u.Outcome != engine.Skipped:
			return ""
		case at != engine.Skipped:
			at = u.Outcome
		}
	}
	return at
}

// addReasonOfCreation adds to the reason why a rule does not match an update the reason against a creation.
func addReasonOfCreation(c *engine.Change, s *engine.Step) {
	for i := range c.Steps {
		u := &c.Steps[i]
		if u.Rule != s.Rule || u.Trigger() != s.Trigger() || u.Outcome != engine.NotMatched || u.Err == nil {
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
