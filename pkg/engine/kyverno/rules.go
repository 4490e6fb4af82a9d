package kyverno

import "github.com/kubectl-mutate/kubectl-mutate/pkg/engine"

// WrittenRule is a rule of a policy that mutates, as its document has it, or as it is derived for Pod
// controllers.
type WrittenRule struct {
	Fields  map[string]any
	Index   int  // of the rule in spec.rules that it is, or is derived from
	Derived bool // for Pod controllers
}

// WrittenRules returns the rules of a policy that mutate, in evaluation order.
func WrittenRules(d engine.Document) []WrittenRule {
	spec := mapping(d.Object().Object["spec"])
	var all []map[string]any
	for _, raw := range sequence(spec["rules"]) {
		all = append(all, mapping(raw))
	}
	derived, from := autogenRules(all, d.Object().GetAnnotations())
	var out []WrittenRule
	for i, rule := range all {
		if rule["mutate"] != nil && (len(derived) == 0 || !isAutogenRule(ruleName(rule))) {
			out = append(out, WrittenRule{Fields: rule, Index: i})
		}
	}
	for i, rule := range derived {
		out = append(out, WrittenRule{Fields: rule, Index: from[i], Derived: true})
	}
	return out
}
