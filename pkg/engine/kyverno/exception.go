package kyverno

import (
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
	rules  []string          // wildcards; a derived rule has to be named by its own name
	node   policydecode.Node // of the policy's name
}

func decodeException(r *policydecode.Report, d engine.Document) *exception {
	root := policydecode.Node{Report: r, Value: d.Object.Object}.Fields()
	spec := root.At("spec").Fields()
	e := &exception{name: nameOf(d.Object), match: match.Decode(spec.At("match")), conditions: match.DecodeConditions(spec.At("conditions"))}
	for _, n := range spec.At("exceptions").List() {
		f := n.Fields()
		named := exceptedRules{policy: f.At("policyName").Text(), rules: f.At("ruleNames").Texts(), node: f.At("policyName")}
		named.node.Value = nil // the document is not needed any more
		e.rules = append(e.rules, named)
		f.Done()
	}
	spec.Accept("background", "podSecurity", "images", "allowedValues", "reportResult")
	spec.Done()
	return e
}

// lintExceptions warns of the exceptions that name no policy.
func lintExceptions(all []*exception, policies []*policy) {
	if len(all) == 0 {
		return
	}
	names := make(map[string]bool, len(policies))
	for _, p := range policies {
		names[strings.TrimPrefix(p.namespace+"/"+p.name, "/")] = true
	}
	for _, e := range all {
		for _, named := range e.rules {
			if err := engine.CheckPolicyName(named.policy, names); err != nil {
				named.node.Lint("%w", err)
			}
		}
	}
}

// excepting returns the exceptions that name a rule.
func excepting(all []*exception, ref engine.RuleRef) []*exception {
	var out []*exception
	for _, e := range all {
		for _, named := range e.rules {
			if selector.MatchWildcard(named.policy, ref.Policy) && selector.AnyOf(named.rules, ref.Rule) {
				out = append(out, e)
				break
			}
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
