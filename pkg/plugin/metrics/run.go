package metrics

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
)

// Run holds the counts of one run. It is safe for concurrent use. A nil Run counts nothing.
type Run struct {
	mu       *sync.Mutex // of the families
	families []*family
	waiting  func() int // events of a watch; nil of a run that ends
	cluster  string     // of objects that name none
}

// The places of the families, which is the order in which they are written.
const (
	info = iota
	objects
	incompleteObjects
	ruleObjects
	writes
	ruleWrites
	// Those of a watch alone.
	events
	watchErrors
	waitingEvents
)

// What would become of an object, in the labels of its metric.
const (
	changed   = "changed"
	unchanged = "unchanged"
)

// New returns a Run without counts. The verb is the command's name.
func New(verb, version string) *Run {
	kind := []string{"cluster", "group", "kind", "namespace"}
	rule := append([]string{"dialect", "policy", "rule"}, kind...)
	r := &Run{mu: &sync.Mutex{}, families: []*family{
		newFamily("kubectl_mutate_run_info", "The run that these metrics are of.", []string{"verb", "version"}),
		newFamily("kubectl_mutate_objects", "Evaluated objects, by what would become of them.", append(kind, "result")),
		newFamily("kubectl_mutate_incomplete_objects", "Evaluated objects on which a rule failed, was denied or is not supported.", kind),
		newFamily("kubectl_mutate_rule_objects", "Objects by the outcome of each rule on them.", append(rule, "outcome")),
		newFamily("kubectl_mutate_writes", "Objects that were to be written, by outcome.", append(kind, "outcome")),
		newFamily("kubectl_mutate_rule_writes", "Objects that were to be written, by rule that changes them.", append(rule, "outcome")),
	}}
	r.add(info, []string{verb, version})
	return r
}

// NewWatch returns a Run for one that goes on. Its metrics are counters, which name no namespace: those come and go, and what is kept must not
// grow with them. Waiting returns how many events wait to be evaluated.
func NewWatch(verb, version string, waiting func() int) *Run {
	r := New(verb, version)
	r.waiting = waiting
	r.families = append(r.families,
		newFamily("kubectl_mutate_watch_events", "Changes of the cluster that were evaluated.", []string{"operation", "group", "kind"}),
		newFamily("kubectl_mutate_watch_errors", "What went wrong, beside rules and writes.", nil),
		newFamily("kubectl_mutate_watch_waiting_events", "Changes of the cluster that wait to be evaluated.", nil))
	for i, f := range r.families {
		f.counter = i != info && i != waitingEvents
	}
	r.families[watchErrors].counts[""] = 0
	return r
}

// Event counts an event of a watch that was evaluated.
func (r *Run) Event(operation engine.Operation, kind schema.GroupKind) {
	if r != nil {
		r.add(events, []string{string(operation), kind.Group, kind.Kind})
	}
}

// Error counts something that went wrong in a watch.
func (r *Run) Error() {
	if r != nil {
		r.add(watchErrors, []string{})
	}
}

// On returns the Run for the objects of one cluster of several.
func (r *Run) On(cluster string) *Run {
	if r == nil {
		return nil
	}
	out := *r
	out.cluster = cluster
	return &out
}

// Evaluated counts one object and what the rules did to it. Several triggers of
// one rule on the same object count once for each outcome.
func (r *Run) Evaluated(c *engine.Change) {
	if r == nil {
		return
	}
	if c.Before != nil {
		result := unchanged
		if c.Changed() {
			result = changed
		}
		r.add(objects, append(r.kindOf(c.Subject), result))
		if c.Incomplete() {
			r.add(incompleteObjects, r.kindOf(c.Subject))
		}
	}
	seen := map[[2]any]bool{}
	for i := range c.Steps {
		s := &c.Steps[i]
		id := [2]any{s.Rule, s.Outcome}
		if s.Outcome == engine.NotMatched || seen[id] {
			continue
		}
		seen[id] = true
		r.add(ruleObjects, append(r.ruleOf(s.Rule, c.Subject), string(s.Outcome)))
	}
}

// Written counts the outcome of one object that was to be written, and the rules that
// change it. A separate write to /status counts as another write.
func (r *Run) Written(result *apply.Result, rules []engine.RuleRef) {
	if r == nil {
		return
	}
	r.add(writes, append(r.kindOf(result.Key), string(result.Outcome)))
	for i, rule := range rules {
		if !slices.Contains(rules[:i], rule) {
			r.add(ruleWrites, append(r.ruleOf(rule, result.Key), string(result.Outcome)))
		}
	}
	if result.Status != nil {
		r.Written(result.Status, rules)
	}
}

func (r *Run) add(family int, labels []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.families[family].add(labels)
}

// kindOf returns the cluster, of a run over several, and the kind and namespace of an object.
func (r *Run) kindOf(k engine.ObjectKey) []string {
	if r.waiting != nil {
		k.Namespace = ""
	}
	return []string{cmp.Or(k.Cluster, r.cluster), k.Group, k.Kind, k.Namespace}
}

func (r *Run) ruleOf(rule engine.RuleRef, k engine.ObjectKey) []string {
	return append([]string{rule.Dialect, rule.Policy, rule.Rule}, r.kindOf(k)...)
}
