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

// exception is a compiled PolicyException: it skips rules on some objects.
type exception struct {
	name       string
	rules      []exceptedRules
	match      *match.Block
	conditions *match.Conditions
}

// exceptedRules names rules of a policy, with wildcards; a derived rule needs its own name.
type exceptedRules struct {
	policy policydecode.Node
	rules  []policydecode.Node
}

func decodeException(r *policydecode.Report, d engine.Document) *exception {
	root := policydecode.Node{Report: r, Value: d.Object().Object}.Fields()
	spec := root.At("spec").Fields()
	e := &exception{
		name: nameOf(d), match: decodeExceptionMatch(spec),
		conditions: match.DecodeConditions(spec.At("conditions")),
	}
	for _, n := range spec.At("exceptions").List() {
		f := n.Fields()
		rules := exceptedRules{f.At("policyName"), f.At("ruleNames").List()}
		if rules.policy.Value == nil || rules.policy.Value == "" {
			rules.policy.Refuse(kyvernoName, "an exception requires a policy name")
		}
		for _, n := range append(rules.rules, rules.policy) {
			n.Text() // reports any other type
		}
		e.rules = append(e.rules, rules)
		f.Done()
	}
	spec.Accept("background", "podSecurity")
	spec.Done()
	root.DoneObject()
	return e
}

// decodeExceptionMatch reads match, which has no flat form here (api/kyverno/v2beta1, MatchResources).
func decodeExceptionMatch(spec *policydecode.Fields) *match.Block {
	n := spec.At("match")
	f := n.Fields()
	if len(sequence(f.Values["any"]))+len(sequence(f.Values["all"])) == 0 {
		n.Empty("match cannot be empty: without any or all it matches nothing")
	}
	(&checked{background: spec.Values["background"] != false}).checkFilters(n)
	rest := map[string]any{}
	for key, value := range f.Values {
		if !slices.Contains([]string{"resources", "subjects", "roles", "clusterRoles"}, key) {
			f.Accept(key) // match.Decode reports it
			rest[key] = value
		}
	}
	f.Elsewhere("below an entry of any", "resources", "subjects", "roles", "clusterRoles")
	f.Done()
	if n.Value = rest; f.Values == nil {
		n.Value = nil
	}
	return match.Decode(n)
}

// lintExceptions warns of exceptions that name an unknown policy or rule.
func lintExceptions(all []*exception, policies []*policy) {
	names := engine.PolicyNames{}
	for _, p := range policies {
		names.Add(p.fullName())
	}
	for _, e := range all {
		for _, rules := range e.rules {
			if err := names.Check(stringOrEmpty(rules.policy.Value)); err != nil {
				rules.policy.Lint("%w", err)
				continue
			}
			rules.lintRules(policies)
		}
	}
}

// fullName returns the policy's name in exceptions.
func (p *policy) fullName() string { return strings.TrimPrefix(p.namespace+"/"+p.name, "/") }

// lintRules warns of rule names that no named policy has.
func (x *exceptedRules) lintRules(policies []*policy) {
	var known []string
	for _, p := range policies {
		if x.namesPolicy(p.fullName()) {
			known = append(known, p.ruleNames()...)
		}
	}
	for _, n := range x.rules {
		name, hint := stringOrEmpty(n.Value), ""
		if slices.ContainsFunc(known, func(rule string) bool { return selector.MatchWildcard(name, rule) }) {
			continue
		}
		if meant := engine.Nearest(name, slices.Values(known)); meant != "" {
			hint = fmt.Sprintf("; did you mean %q?", meant)
		}
		n.Lint("policy %s has no rule %q, so this has no effect%s", x.policy.Value, name, hint)
	}
}

func (x *exceptedRules) namesPolicy(policy string) bool {
	return selector.MatchWildcard(stringOrEmpty(x.policy.Value), policy)
}

// ruleNames returns the rule names that an exception may use for a policy.
func (p *policy) ruleNames() []string {
	var all []string
	compiled := map[string]bool{}
	for _, r := range p.rules {
		compiled[r.written] = true
		all = append(all, r.ref.Rule)
	}
	for _, name := range p.written {
		if all = append(all, name); !compiled[name] { // Kyverno also derives rules of other types
			all = append(all, autogenPrefix+name, autogenPrefix+"cronjob-"+name)
		}
	}
	return all
}

func excepting(all []*exception, ref engine.RuleRef) []*exception {
	var out []*exception
	for _, e := range all {
		if slices.ContainsFunc(e.rules, func(named exceptedRules) bool {
			return named.namesPolicy(ref.Policy) && slices.ContainsFunc(named.rules, func(n policydecode.Node) bool {
				return selector.MatchWildcard(stringOrEmpty(n.Value), ref.Rule)
			})
		}) {
			out = append(out, e)
		}
	}
	return out
}

// excepted returns an *engine.SkippedError if an exception covers the matched object.
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
			return &RuleError{"conditions of PolicyException " + x.name, err}
		}
		return &engine.SkippedError{Reason: "rule is skipped due to policy exception " + x.name}
	}
	return nil
}
