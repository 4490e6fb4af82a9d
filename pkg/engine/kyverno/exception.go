package kyverno

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// exception is a compiled PolicyException: objects on which some rules are skipped.
type exception struct {
	name       string
	rules      []exceptedRules
	match      *match.Block
	conditions *match.Conditions
}

type exceptedRules struct {
	policy string
	rules  []string            // wildcards; a derived rule has to be named by its own name
	node   policydecode.Node   // of the policy's name
	nodes  []policydecode.Node // of the names of rules
}

func decodeException(r *policydecode.Report, d engine.Document) *exception {
	root := policydecode.Node{Report: r, Value: d.Object().Object}.Fields()
	spec := root.At("spec").Fields()
	e := &exception{name: nameOf(d), match: match.Decode(spec.At("match")), conditions: match.DecodeConditions(spec.At("conditions"))}
	for _, n := range spec.At("exceptions").List() {
		f := n.Fields()
		named := exceptedRules{policy: f.At("policyName").Text(), rules: f.At("ruleNames").Texts(), node: f.At("policyName")}
		named.node.Value = nil // the document is not needed any more
		for _, name := range f.At("ruleNames").List() {
			name.Value = nil
			named.nodes = append(named.nodes, name)
		}
		e.rules = append(e.rules, named)
		f.Done()
	}
	spec.Accept("background", "podSecurity", "images", "allowedValues", "reportResult")
	spec.Done()
	root.DoneObject()
	return e
}

// lintExceptions warns of the exceptions that name no policy, or no rule of it.
func lintExceptions(all []*exception, policies []*policy) {
	if len(all) == 0 {
		return
	}
	names, named := engine.PolicyNames{}, make(map[string][]*policy, len(policies))
	for _, p := range policies {
		name := p.fullName()
		names.Add(name)
		named[name] = append(named[name], p)
	}
	sorted, known := sortedByName(policies), map[*policy]*ruleNames{}
	for _, e := range all {
		for _, rules := range e.rules {
			if err := names.Check(rules.policy); err != nil {
				rules.node.Lint("%w", err)
				continue
			}
			if selector.HasWildcard(rules.policy) {
				rules.lintRules(sorted.matching(rules.policy), known)
			} else {
				rules.lintRules(named[rules.policy], known)
			}
		}
	}
}

// fullName is how an exception names a policy.
func (p *policy) fullName() string { return strings.TrimPrefix(p.namespace+"/"+p.name, "/") }

// policiesByName are policies in the order of their full names.
type policiesByName []*policy

func sortedByName(policies []*policy) policiesByName {
	return slices.SortedStableFunc(slices.Values(policies), func(a, b *policy) int { return strings.Compare(a.fullName(), b.fullName()) })
}

// matching returns the policies whose names match a pattern.
func (all policiesByName) matching(pattern string) []*policy {
	prefix := selector.Prefix(pattern)
	from, _ := slices.BinarySearchFunc(all, prefix, func(p *policy, name string) int { return strings.Compare(p.fullName(), name) })
	var out []*policy
	for _, p := range all[from:] {
		if name := p.fullName(); !strings.HasPrefix(name, prefix) {
			break
		} else if selector.MatchWildcard(pattern, name) {
			out = append(out, p)
		}
	}
	return out
}

// lintRules warns of names that no rule of the named policies has. It adds to what is known of policies.
func (x *exceptedRules) lintRules(policies []*policy, known map[*policy]*ruleNames) {
	all := make([][]string, len(policies))
	for i, p := range policies {
		all[i] = p.ruleNames(known).all
	}
	for i, name := range x.rules {
		if slices.ContainsFunc(policies, func(p *policy) bool { return p.ruleNames(known).has(name) }) {
			continue
		}
		text := ""
		if meant := engine.Nearest(name, oneAfterTheOther(all...)); meant != "" {
			text = fmt.Sprintf("; did you mean %q?", meant)
		}
		x.nodes[i].Lint("policy %s has no rule %q, so this has no effect%s", x.policy, name, text)
	}
}

// ruleNames are the names that an exception may give to the rules of a policy.
type ruleNames struct {
	all []string
	set map[string]bool
}

// has reports whether a name, or one that a pattern matches, is among them.
func (n *ruleNames) has(name string) bool {
	return n.set[name] || selector.HasWildcard(name) && slices.ContainsFunc(n.all, func(rule string) bool { return selector.MatchWildcard(name, rule) })
}

// ruleNames returns what is known already, or makes it known.
func (p *policy) ruleNames(known map[*policy]*ruleNames) *ruleNames {
	if known[p] != nil {
		return known[p]
	}
	n := &ruleNames{set: map[string]bool{}}
	add := func(name string) { n.all, n.set[name] = append(n.all, name), true }
	compiled := map[string]bool{}
	for _, r := range p.rules {
		compiled[r.written] = true
		add(r.ref.Rule)
	}
	for _, name := range p.written {
		if add(name); !compiled[name] { // Kyverno derives rules of those for other purposes, too
			add(autogenPrefix + name)
			add(autogenPrefix + "cronjob-" + name)
		}
	}
	known[p] = n
	return n
}

// exceptionIndex finds the exceptions that may name a policy without asking each of them.
type exceptionIndex struct {
	all      []*exception
	named    map[string][]int // the places of exceptions, by a policy or rule that they name
	patterns map[string][]int // of those that name policies with wildcards, by what stands before these
}

func newExceptionIndex(all []*exception) *exceptionIndex {
	x := &exceptionIndex{all: all, named: map[string][]int{}, patterns: map[string][]int{}}
	for i, e := range all {
		for _, rules := range e.rules {
			if selector.HasWildcard(rules.policy) {
				prefix := selector.Prefix(rules.policy)
				x.patterns[prefix] = append(x.patterns[prefix], i)
				continue
			}
			for _, rule := range rules.rules {
				name := engine.RuleRef{Policy: rules.policy, Rule: rule}.String()
				if selector.HasWildcard(rule) {
					name = rules.policy
				}
				x.named[name] = append(x.named[name], i)
			}
		}
	}
	return x
}

// excepting returns the exceptions that name a rule.
func (x *exceptionIndex) excepting(ref engine.RuleRef) []*exception {
	places := slices.Concat(x.named[ref.Policy], x.named[ref.String()])
	for n := 0; n <= len(ref.Policy) && len(x.patterns) > 0; n++ {
		places = append(places, x.patterns[ref.Policy[:n]]...)
	}
	slices.Sort(places)
	var out []*exception
	for _, i := range slices.Compact(places) {
		if slices.ContainsFunc(x.all[i].rules, func(named exceptedRules) bool {
			return selector.MatchWildcard(named.policy, ref.Policy) && selector.AnyOf(named.rules, ref.Rule)
		}) {
			out = append(out, x.all[i])
		}
	}
	return out
}

// excepted returns a *SkippedError when an exception covers the matched object.
func (e *execution) excepted(s *variables.Scope) error {
	for _, x := range e.rule.exceptions {
		m, err := x.match.Match(&e.matched)
		if err != nil {
			return err
		}
		if !m.Applies() {
			continue
		}
		if x.conditions != nil {
			verdict, err := x.conditions.Met(s)
			if err != nil {
				return e.failed("conditions of PolicyException "+x.name, err)
			}
			if !verdict.Met {
				continue
			}
		}
		return &SkippedError{Reason: "rule is skipped due to policy exception " + x.name}
	}
	return nil
}
