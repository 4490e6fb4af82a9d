package kyverno

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
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
			all = append(all, &exception{name: fmt.Sprint(i), rules: []exceptedRules{{policy: pattern(), rules: []string{pick("r", "r", "r*", "s")}}, {policy: name(), rules: []string{pick("r", "t", "?"), "s"}}}})
		}
		sorted, index, names := sortedByName(policies), newExceptionIndex(all), engine.PolicyNames{}
		for _, p := range policies {
			names.Add(p.name)
			matches := func(e *exception) bool {
				return slices.ContainsFunc(e.rules, func(x exceptedRules) bool {
					return selector.MatchWildcard(x.policy, p.name) && selector.AnyOf(x.rules, "r")
				})
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

// Twice the exceptions for twice the rules of one policy take at most 2.2 times as much.
func TestExceptionsOfManyRulesAreLinear(t *testing.T) {
	allocated := func(n int) uint64 {
		rules := make([]string, n)
		documents := make([]engine.Document, n, n+1)
		for i := range n {
			rules[i] = fmt.Sprintf("{name: rule%d, match: {any: [{resources: {kinds: [ConfigMap]}}]}, mutate: {patchStrategicMerge: {data: {x: y}}}}", i)
			documents[i] = engine.NewDocument(conformance.ReadObjects(t, fmt.Sprintf("{apiVersion: kyverno.io/v2, kind: PolicyException, metadata: {name: e%[1]d, namespace: n}, "+
				"spec: {exceptions: [{policyName: p, ruleNames: [rulx%[1]d, rule%[1]d]}], match: {any: [{resources: {kinds: [ConfigMap]}}]}}}", i))[0], "")
		}
		documents = append(documents, engine.NewDocument(conformance.ReadObjects(t, "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: ["+strings.Join(rules, ", ")+"]}}")[0], ""))
		warnings := 0
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := New().Compile(engine.Compilation{Documents: documents, Warn: func(engine.CompileError) { warnings++ }}); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if warnings < n {
			t.Fatalf("%d warnings of %d names of rules that are not there", warnings, n)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	allocated(10) // what is made once
	if once, twice := allocated(600), allocated(1200); float64(twice) > 2.2*float64(once) {
		t.Errorf("600 rules and exceptions allocate %d bytes, 1,200 %d", once, twice)
	}
}
