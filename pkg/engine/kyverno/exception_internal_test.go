package kyverno

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Exceptions are found by the names of policies, and policies by the patterns of exceptions, as if each were
// compared with each.
func TestExceptionsByName(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	pick := func(choices ...string) string { return choices[r.IntN(len(choices))] }
	name := func() string { return pick("", "", "n/") + pick("a", "ab", "abc", "ä", "b") }
	pattern := func() string {
		return pick("", "a", "ab", "n/", "ä") + pick("", "*", "?", "*b", "?c", "**", "*?") + pick("", "", "b", "c")
	}
	for range 2000 {
		var policies []*policy
		for range r.IntN(8) {
			policies = append(policies, &policy{name: name()})
		}
		var all []*exception
		for i := range r.IntN(8) {
			all = append(all, &exception{name: fmt.Sprint(i), rules: []exceptedRules{{policy: pattern(), rules: []string{"r"}}, {policy: name(), rules: []string{"r", "s"}}}})
		}
		sorted, index, names := sortedByName(policies), newExceptionIndex(all), engine.PolicyNames{}
		for _, p := range policies {
			names.Add(p.name)
			matches := func(e *exception) bool {
				return slices.ContainsFunc(e.rules, func(x exceptedRules) bool { return selector.MatchWildcard(x.policy, p.name) })
			}
			want := slices.DeleteFunc(slices.Clone(all), func(e *exception) bool { return !matches(e) })
			if got := index.excepting(engine.RuleRef{Policy: p.name, Rule: "r"}); !slices.Equal(got, want) {
				t.Fatalf("%d exceptions name %q, want %d", len(got), p.name, len(want))
			}
		}
		one := pattern()
		want := slices.DeleteFunc(slices.Clone(policies), func(p *policy) bool { return !selector.MatchWildcard(one, p.name) })
		if got := sorted.matching(one); selector.HasWildcard(one) && len(got) != len(want) {
			t.Fatalf("%q matches %d policies, want %d", one, len(got), len(want))
		}
		if known := names.Check(one) == nil; known != (len(want) > 0) {
			t.Fatalf("%q is that of a policy: %t", one, known)
		}
	}
}
