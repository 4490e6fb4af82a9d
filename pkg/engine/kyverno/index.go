package kyverno

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// maxKinds is of how many kinds an index remembers which rules may match them.
const maxKinds = 1000

// ruleIndex finds the rules that may match an object without asking each of them.
type ruleIndex struct {
	rules []*rule // in evaluation order
	refs  []engine.RuleRef

	byKind map[string][]entry // for each kind that some rule names plainly
	others []entry            // of rules that name a kind with wildcards

	mu    sync.Mutex
	kinds map[string]*kindIndex
}

// entry is what an object of a kind must have so that a rule may match it. A rule may have several, of which one is enough.
type entry struct {
	kind string // as the rule names it
	at   int    // the place of the rule
	by   criterion
	label
}

// criterion is by what an entry tells objects apart: a name or a namespace, which is the value of its label and may be a
// pattern, or the label itself.
type criterion int

const (
	byNothing criterion = iota
	byName
	byNamespace
	byLabel
)

type label struct{ key, value string }

func newEntry(at int, s *engine.Selection) entry {
	e := entry{kind: s.Kind, at: at}
	switch {
	case s.Name != "" && !selector.HasWildcard(s.Name):
		e.by, e.value = byName, s.Name
	case s.Namespace != "" && !selector.HasWildcard(s.Namespace):
		e.by, e.value = byNamespace, s.Namespace
	case s.Labels != nil && len(s.Labels.MatchLabels) > 0:
		e.by, e.key = byLabel, slices.Min(slices.Collect(maps.Keys(s.Labels.MatchLabels)))
		e.value = s.Labels.MatchLabels[e.key]
	case s.Name != "":
		e.by, e.value = byName, s.Name
	case s.Namespace != "":
		e.by, e.value = byNamespace, s.Namespace
	}
	return e
}

// isPattern reports whether several names or namespaces may meet the entry.
func (e *entry) isPattern() bool { return e.by != byLabel && selector.HasWildcard(e.value) }

// newRuleIndex returns an index of those rules that it is for.
func newRuleIndex(policies []*policy, isFor func(*rule) bool) *ruleIndex {
	x := &ruleIndex{byKind: map[string][]entry{}, kinds: map[string]*kindIndex{}}
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
	selections := r.match.Selections(r.policy.namespace)
	for _, kind := range r.match.Kinds() {
		if kind.Subresource != "" && kind.Subresource != "*" { // of which there is no selection
			selections = append(selections, engine.Selection{Kind: kind.Kind})
		}
	}
	for _, s := range selections {
		e := newEntry(len(x.rules), &s)
		if selector.HasWildcard(s.Kind) {
			x.others = append(x.others, e)
		} else {
			x.byKind[s.Kind] = append(x.byKind[s.Kind], e)
		}
	}
	x.rules, x.refs = append(x.rules, r), append(x.refs, r.ref)
}

// kind returns the index of a kind.
func (x *ruleIndex) kind(kind string) *kindIndex {
	x.mu.Lock()
	defer x.mu.Unlock()
	k := x.kinds[kind]
	if k == nil {
		k = &kindIndex{by: map[entry][]int{}}
		for _, e := range x.byKind[kind] {
			k.add(e)
		}
		for _, e := range x.others {
			if selector.MatchWildcard(e.kind, kind) {
				k.add(e)
			}
		}
		slices.Sort(k.all)
		k.all = slices.Compact(k.all)
		if len(x.kinds) >= maxKinds {
			clear(x.kinds)
		}
		x.kinds[kind] = k
	}
	return k
}

// kindIndex has the places of the rules that may match one kind.
type kindIndex struct {
	all      []int           // in evaluation order
	open     []int           // of those that may match any object
	patterns []entry         // of those with a pattern that an object must meet
	by       map[entry][]int // of the others, by what an object must have, for entries without kind and place

	byLabels bool // some by labels, which rules may change
}

func (k *kindIndex) add(e entry) {
	k.all = append(k.all, e.at)
	switch {
	case e.by == byNothing || e.by != byLabel && e.value == "*":
		k.open = append(k.open, e.at)
		return
	case e.isPattern():
		k.patterns = append(k.patterns, e)
		return
	}
	k.byLabels = k.byLabels || e.by == byLabel
	what := entry{by: e.by, label: e.label}
	k.by[what] = append(k.by[what], e.at)
}

// on returns the places of the rules that may match an object of the kind as it is now, in evaluation order. One
// without a name is matched by the prefix of that to come.
func (k *kindIndex) on(t *engine.Target) []int {
	if len(k.by)+len(k.patterns) == 0 || t.Object.GetName() == "" || t.Key.Subresource != "" {
		return k.all
	}
	out := slices.Clone(k.open)
	add := func(by criterion, l label) { out = append(out, k.by[entry{by: by, label: l}]...) }
	add(byName, label{value: t.Object.GetName()})
	add(byNamespace, label{value: t.Object.GetNamespace()})
	labels, _, _ := unstructured.NestedFieldNoCopy(t.Object.Object, "metadata", "labels")
	for key, value := range mapping(labels) {
		if text, ok := value.(string); ok {
			add(byLabel, label{key, text})
		}
	}
	for i := range k.patterns {
		e, text := &k.patterns[i], t.Object.GetName()
		if e.by == byNamespace {
			text = t.Object.GetNamespace()
		}
		if selector.MatchWildcard(e.value, text) {
			out = append(out, e.at)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// changed finds the rules that may match the object since a step has changed it.
func (v *visit) changed(t *engine.Target) {
	if !v.reasons && v.kind.byLabels {
		v.places = v.kind.on(t)
	}
}

// visit is the rules of an index on their way over one object.
type visit struct {
	*ruleIndex
	sink    engine.Sink
	kind    *kindIndex
	places  []int // of the rules that may match the object as it is
	reasons bool  // of rules that do not match are wanted: all are visited
	others  []int // the places of the rules with another outcome
}

func (x *ruleIndex) visit(t *engine.Target, sink engine.Sink) *visit {
	v := &visit{ruleIndex: x, sink: sink, kind: x.kind(t.Key.Kind), reasons: sink.Wants(engine.NotMatched)}
	v.places = v.kind.on(t)
	return v
}

// next returns the place of the next rule to visit from one on, and whether it may match the kind; the number of
// rules when there is none.
func (v *visit) next(from int) (at int, mayMatch bool) {
	if v.reasons {
		_, mayMatch = slices.BinarySearch(v.kind.all, from)
		return from, mayMatch
	}
	if i, _ := slices.BinarySearch(v.places, from); i < len(v.places) {
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
