package kyverno

import (
	"errors"
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
		named.nodes = f.At("ruleNames").List()
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
	names := engine.PolicyNames{}
	for _, p := range policies {
		names.Add(p.fullName())
	}
	for _, e := range all {
		for _, rules := range e.rules {
			if err := names.Check(rules.policy); err != nil {
				rules.node.Lint("%w", err)
				continue
			}
			rules.lintRules(policies)
		}
	}
}

// fullName is how an exception names a policy.
func (p *policy) fullName() string { return strings.TrimPrefix(p.namespace+"/"+p.name, "/") }

// lintRules warns of names that no rule of the named policies has.
func (x *exceptedRules) lintRules(policies []*policy) {
	var known []string
	for _, p := range policies {
		if selector.MatchWildcard(x.policy, p.fullName()) {
			known = append(known, p.ruleNames()...)
		}
	}
	for i, name := range x.rules {
		if slices.ContainsFunc(known, func(rule string) bool { return selector.MatchWildcard(name, rule) }) {
			continue
		}
		text := ""
		if meant := engine.Nearest(name, slices.Values(known)); meant != "" {
			text = fmt.Sprintf("; did you mean %q?", meant)
		}
		x.nodes[i].Lint("policy %s has no rule %q, so this has no effect%s", x.policy, name, text)
	}
}

// ruleNames are the names that an exception may give to the rules of a policy.
func (p *policy) ruleNames() []string {
	var all []string
	compiled := map[string]bool{}
	for _, r := range p.rules {
		compiled[r.written] = true
		all = append(all, r.ref.Rule)
	}
	for _, name := range p.written {
		if all = append(all, name); !compiled[name] { // Kyverno derives rules of those for other purposes, too
			all = append(all, autogenPrefix+name, autogenPrefix+"cronjob-"+name)
		}
	}
	return all
}

// excepting returns the exceptions that name a rule.
func excepting(all []*exception, ref engine.RuleRef) []*exception {
	var out []*exception
	for _, e := range all {
		if slices.ContainsFunc(e.rules, func(named exceptedRules) bool {
			return selector.MatchWildcard(named.policy, ref.Policy) && selector.AnyOf(named.rules, ref.Rule)
		}) {
			out = append(out, e)
		}
	}
	return out
}

// excepted returns a *SkippedError when an exception covers the matched object.
func (e *execution) excepted(s *variables.Scope) error {
	for _, x := range e.rule.exceptions {
		var unmet *match.UnmetError
		var notMatched *match.NotMatchedError
		if err := x.match.Match(&e.matched); errors.As(err, &notMatched) {
			continue
		} else if err != nil {
			return err
		}
		if err := x.conditions.Check(s); errors.As(err, &unmet) {
			continue
		} else if err != nil {
			return e.failed("conditions of PolicyException "+x.name, err)
		}
		return &SkippedError{Reason: "rule is skipped due to policy exception " + x.name}
	}
	return nil
}
