package metrics

import (
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
)

// Run holds the counts of one run. It is used by one goroutine. A nil Run counts nothing.
type Run struct{ families []*family }

// The places of the families, which is the order in which they are written.
const (
	info = iota
	objects
	incompleteObjects
	ruleObjects
	writes
	ruleWrites
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
	r := &Run{families: []*family{
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
		r.add(objects, append(kindOf(c.Subject), result))
		if c.Incomplete() {
			r.add(incompleteObjects, kindOf(c.Subject))
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
		r.add(ruleObjects, append(ruleOf(s.Rule, s.Subject), string(s.Outcome)))
	}
}

// Written counts the outcome of one object that was to be written, and the rules that
// change it. A separate write to /status counts as another write.
func (r *Run) Written(result *apply.Result, rules []engine.RuleRef) {
	if r == nil {
		return
	}
	r.add(writes, append(kindOf(result.Key), string(result.Outcome)))
	for i, rule := range rules {
		if !slices.Contains(rules[:i], rule) {
			r.add(ruleWrites, append(ruleOf(rule, result.Key), string(result.Outcome)))
		}
	}
	if result.Status != nil {
		r.Written(result.Status, rules)
	}
}

func (r *Run) add(family int, labels []string) { r.families[family].add(labels) }

// kindOf returns the cluster, of a run over several, and the kind and namespace of an object.
func kindOf(k engine.ObjectKey) []string { return []string{k.Cluster, k.Group, k.Kind, k.Namespace} }

func ruleOf(r engine.RuleRef, k engine.ObjectKey) []string {
	return append([]string{r.Dialect, r.Policy, r.Rule}, kindOf(k)...)
}
