package kyverno

import (
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// ruleIndex finds the rules that may match an object of a kind without asking each of them.
type ruleIndex struct {
	rules  []*rule // in evaluation order
	refs   []engine.RuleRef
	byKind map[string][]int // places of rules, by a kind that they name, which may be a pattern
	open   []string         // the kinds that are patterns
}

// newRuleIndex returns an index of those rules that it is for.
func newRuleIndex(policies []*policy, isFor func(*rule) bool) *ruleIndex {
	x := &ruleIndex{byKind: map[string][]int{}}
	for _, p := range policies {
		for _, r := range p.rules {
			if isFor(r) {
				x.add(r)
			}
		}
	}
	return x
}

func (x *ruleIndex) add(r *rule) {
	at := len(x.rules)
	for _, kind := range r.match.Kinds() {
		places, known := x.byKind[kind.Kind]
		if !known && selector.HasWildcard(kind.Kind) {
			x.open = append(x.open, kind.Kind)
		}
		if !slices.Contains(places, at) {
			x.byKind[kind.Kind] = append(places, at)
		}
	}
	x.rules, x.refs = append(x.rules, r), append(x.refs, r.ref)
}

// of returns the places of the rules that may match a kind, in evaluation order.
func (x *ruleIndex) of(kind string) []int {
	places := x.byKind[kind]
	several := false
	for _, pattern := range x.open {
		if selector.MatchWildcard(pattern, kind) {
			places, several = slices.Concat(places, x.byKind[pattern]), true
		}
	}
	if several {
		slices.Sort(places)
		places = slices.Compact(places)
	}
	return places
}

// visit is the rules of an index on their way over one object.
type visit struct {
	*ruleIndex
	sink    engine.Sink
	places  []int // of the rules that may match the object
	reasons bool  // of rules that do not match are wanted: all are visited
	others  []int // the places of the rules with another outcome
}

func (x *ruleIndex) visit(t *engine.Target, sink engine.Sink) *visit {
	return &visit{ruleIndex: x, sink: sink, places: x.of(t.Key.Kind), reasons: sink.Wants(engine.NotMatched)}
}

// next returns the place of the next rule to visit from one on, and whether it may match the kind; the number of
// rules when there is none.
func (v *visit) next(from int) (at int, mayMatch bool) {
	i, found := slices.BinarySearch(v.places, from)
	switch {
	case v.reasons:
		return from, found
	case i < len(v.places):
		return v.places[i], true
	}
	return len(v.rules), false
}

// report hands over what a rule did. That it did not match is handed over at the end, unless the reason is wanted.
func (v *visit) report(at int, steps ...engine.Step) {
	if !v.reasons && len(steps) == 1 && steps[0].Outcome == engine.NotMatched {
		return
	}
	v.others = append(v.others, at)
	for _, s := range steps {
		v.sink.Step(s)
	}
}

// skipRest reports the rules that applyRules: One keeps from running, because one of the policy did something. It
// returns the place of the last rule of the policy.
func (v *visit) skipRest(applied int, t *engine.Target, did string) int {
	last := applied
	for last+1 < len(v.rules) && v.rules[last+1].policy == v.rules[applied].policy {
		last++
		step := engine.Step{Rule: v.refs[last], Outcome: engine.Skipped}
		if len(v.rules[last].targets) > 0 {
			step.Trigger = t.Key
		}
		step.Err = &SkippedError{Reason: "applyRules is One, and rule " + v.refs[applied].Rule + " " + did}
		v.report(last, step)
	}
	return last
}

// end hands over the rules that did not match.
func (v *visit) end() {
	if !v.reasons && len(v.others) < len(v.rules) {
		v.sink.NotMatched(engine.RuleList{List: v.refs, Except: v.others})
	}
}
