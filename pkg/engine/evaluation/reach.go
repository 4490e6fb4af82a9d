package evaluation

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// reaches records in the first pass how far the rules got that change objects other than their matches, so
// that a run can say why such a rule did not change an object. Nil, for a run without reasons, records
// nothing.
type reaches struct {
	all    []*reach // by program and rule
	byRule map[engine.RuleRef]*reach
}

// reach is how far one rule got. It is as small for many triggers as for one.
type reach struct {
	triggeredRule
	triggers int          // the objects that triggered it
	near     int          // other objects that could
	nearest  *engine.Step // of the nearest of them
	broken   *engine.Step // of the first with an unknown answer
	effects  []*orderedEffect
}

func newReaches(rules []triggeredRule) *reaches {
	x := &reaches{byRule: map[engine.RuleRef]*reach{}}
	for _, rule := range rules {
		r := &reach{triggeredRule: rule}
		x.all, x.byRule[r.ref] = append(x.all, r), r
	}
	return x
}

// byRank orders steps by rule; steps of no rule come first.
func (x *reaches) byRank(a, b engine.Step) int {
	place := func(s *engine.Step) int {
		if r := x.byRule[s.Rule]; r != nil {
			return r.turn
		}
		return -1
	}
	return cmp.Compare(place(&a), place(&b))
}

// note records the result of one object as a trigger.
func (x *reaches) note(t *triggered) {
	if x == nil {
		return
	}
	for _, s := range t.rec.steps {
		if r := x.byRule[s.Rule]; r != nil &&
			!slices.ContainsFunc(t.effects, func(f *orderedEffect) bool { return f.Rule == s.Rule }) {
			shown := shownStep(s, &view{}, &view{})
			r.missed(t, &shown)
		}
	}
}

// missed records an object that did not trigger the rule.
func (r *reach) missed(t *triggered, s *engine.Step) {
	if s.Outcome.Incomplete() && r.broken == nil {
		r.broken = s
	}
	if s.Outcome == engine.NotMatched && !slices.ContainsFunc(r.wants,
		func(s engine.Selection) bool { return s.MatchesResource(t.resource) && s.MatchesName(t.key) }) {
		return // by its identity: labels that it lacks are worth reporting
	}
	r.near++
	if r.nearest == nil || (r.nearest.Outcome == engine.NotMatched && s.Outcome != engine.NotMatched) {
		r.nearest = s
	}
}

// index gives each rule its effects, in order.
func (x *reaches) index(effects []*orderedEffect) {
	if x == nil {
		return
	}
	for _, f := range effects {
		if r := x.byRule[f.Rule]; r != nil {
			if n := len(r.effects); n == 0 || r.effects[n-1].trigger != f.trigger {
				r.triggers++
			}
			r.effects = append(r.effects, f)
		}
	}
}

// unreached returns, for each rule without an effect on the object, a step with the reason.
func (x *reaches) unreached(c *engine.Change, acting []*orderedEffect) []engine.Step {
	if x == nil || c.Before == nil {
		return nil
	}
	acts := map[engine.RuleRef]bool{}
	for _, f := range acting {
		acts[f.Rule] = true
	}
	var out []engine.Step
	for _, r := range x.all {
		if !acts[r.ref] {
			out = append(out, engine.Step{Rule: r.ref, Outcome: engine.NotMatched, Err: r.why(c)})
		}
	}
	return out
}

// why says why the rule does not change an object: the triggers of the rule, and the object that came
// nearest, or else the target of a trigger that came nearest to the object.
func (r *reach) why(c *engine.Change) error {
	const none = "no object triggers the rule"
	switch {
	case len(r.effects) == 0 && r.nearest == nil:
		return errors.New(none + ": its triggers are " + engine.Few(r.wants) + ", and the run saw none")
	case len(r.effects) == 0:
		return fmt.Errorf(none+", of %d that could: %s", r.near, asTrigger(r.nearest))
	}
	var trigger engine.ObjectKey
	var target engine.Selection
	var nearest []engine.Mismatch
	labels := c.Before.GetLabels()
	for i, f := range r.effects[:min(len(r.effects), maxCompared)] {
		if i > 0 && !f.Subjects.MatchesKind(c.Subject) {
			continue // not nearer than the first
		}
		subjects := f.Subjects
		if f.Confidential {
			subjects = engine.Selection{
				Kind: engine.HiddenValue, Namespace: engine.HiddenValue, Name: engine.HiddenValue,
			}
		}
		mismatches := subjects.Mismatches(c.Subject, labels)
		if i == 0 || nearer(mismatches, nearest) {
			trigger, target, nearest = f.Trigger, subjects, mismatches
		}
	}
	text := fmt.Sprintf("none of %d triggers names it as a target", r.triggers)
	if r.triggers == 1 {
		text = "its one trigger does not name it as a target"
	}
	text += fmt.Sprintf(": %s names %s", trigger, target)
	var parts []string
	for _, m := range nearest {
		parts = append(parts, m.Error())
	}
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, "; ") + ")"
	}
	if r.broken != nil {
		text += "; what another one names is not known: " + asTrigger(r.broken)
	}
	return errors.New(text)
}

// asTrigger describes why an object did not trigger a rule.
func asTrigger(s *engine.Step) string {
	outcome := string(s.Outcome)
	if s.Outcome == engine.NotMatched {
		outcome = "does not match"
	}
	if s.Err == nil {
		return fmt.Sprintf("%s: %s", s.Trigger(), outcome)
	}
	return fmt.Sprintf("%s: %s: %v", s.Trigger(), outcome, s.Err)
}

// maxCompared bounds the effects of a rule that are compared with an object to find the nearest: many objects
// times many triggers would take forever.
const maxCompared = 1000

// nearer reports whether a is the shorter list of mismatches. An object of another kind is farther than any
// of the kind.
func nearer(a, b []engine.Mismatch) bool {
	if engine.KindOnly(a) != engine.KindOnly(b) {
		return engine.KindOnly(b)
	}
	return len(a) < len(b)
}
