package evaluate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/evaluate"
)

// words is a dialect whose policies are their own names: each rule is a word of
// the annotation "rules". A rule "broken" does not compile, a policy "broken" has
// no rules at all, one without rules does nothing.
type words struct{}

func (words) Name() string { return "words" }

func (words) Accepts(kind schema.GroupKind) engine.Role {
	return map[string]engine.Role{"Words": engine.Policy, "Exception": engine.Input}[kind.Kind]
}

func (words) Compile(c engine.Compilation) (engine.Program, error) {
	var p program
	var errs []error
	for _, d := range c.Documents {
		name, rules := d.Key.Name, strings.Fields(d.Object().GetAnnotations()["rules"])
		problem := engine.CompileError{Origin: d.Origin, Policy: "Words " + name, Err: errors.New("is broken")}
		if d.Key.Kind != "Words" {
			continue
		}
		if name == "broken" {
			errs = append(errs, &problem)
			continue
		}
		if len(rules) == 0 {
			problem.Err = &engine.LintError{Class: engine.NothingToDo}
			c.Warn(problem)
		}
		for _, rule := range rules {
			if rule == "broken" {
				problem.Rule = rule
				errs = append(errs, &problem)
			} else if r := (engine.RuleRef{Dialect: "words", Policy: name, Rule: rule}); c.Rules.Keeps()(r) {
				p.rules = append(p.rules, r)
			}
		}
	}
	return &p, errors.Join(errs...)
}

type program struct {
	engine.Program // what is not asked of it here
	rules          []engine.RuleRef
}

func (p *program) Rules() []engine.RuleRef { return p.rules }

func document(kind, name, rules string) engine.Document {
	u := &unstructured.Unstructured{Object: map[string]any{"kind": kind}}
	u.SetName(name)
	u.SetAnnotations(map[string]string{"rules": rules})
	return engine.NewDocument(u, "f.yaml:1")
}

// installed is a policy that was found in the cluster.
func installed(name, rules string) engine.Document {
	d := document("Words", name, rules)
	d.Origin = cluster.Origin
	return d
}

// compiled is what came of policies.
type compiled struct {
	Rules            []string
	Broken, Warnings []string
	Idle             int
	Err              string
}

func policies(documents []engine.Document, rules engine.RuleFilter) evaluate.Policies {
	return evaluate.Policies{
		Compilation: engine.Compilation{Documents: documents, Rules: rules}, Dialects: []engine.Dialect{words{}},
	}
}

func compile(p evaluate.Policies) compiled {
	var out compiled
	p.Warn = func(w engine.CompileError) { out.Warnings = append(out.Warnings, w.Policy) }
	programs, err := p.Compile(func(err error) { out.Broken = append(out.Broken, err.Error()) }, func(n int) { out.Idle = n })
	for _, p := range programs {
		for _, r := range p.Rules() {
			out.Rules = append(out.Rules, r.String())
		}
	}
	if err != nil {
		out.Err = err.Error()
	}
	return out
}

func TestCompileBrokenPolicies(t *testing.T) {
	const ofPolicy, ofRule = "f.yaml:1: Words broken: is broken", "f.yaml:1: Words half, rule broken: is broken"
	documents := []engine.Document{
		document("Words", "broken", ""), document("Words", "half", "good broken"), document("Words", "empty", ""),
		installed("other", ""), document("Exception", "x", ""), document("Foreign", "y", ""),
	}
	half := []string{"half/good"}
	for name, c := range map[string]struct {
		rules engine.RuleFilter
		want  compiled
	}{
		"everything is reported": {
			engine.RuleFilter{}, compiled{Rules: half, Broken: []string{ofPolicy, ofRule}, Warnings: []string{"Words empty"}, Idle: 1},
		},
		"a broken policy that is left out is not": {
			engine.RuleFilter{Skip: []string{"broken"}}, compiled{Rules: half, Broken: []string{ofRule}, Warnings: []string{"Words empty"}, Idle: 1},
		},
		"a broken rule that is left out is not": {
			engine.RuleFilter{Skip: []string{"half/broken"}}, compiled{Rules: half, Broken: []string{ofPolicy}, Warnings: []string{"Words empty"}, Idle: 1},
		},
		"only what was chosen is": {
			engine.RuleFilter{Only: []string{"half/good"}}, compiled{Rules: half},
		},
		"a chosen policy brings its broken rule": {
			engine.RuleFilter{Only: []string{"half"}}, compiled{Rules: half, Broken: []string{ofRule}},
		},
		"an installed policy that changes nothing is reported if it was named": {
			engine.RuleFilter{Only: []string{"other", "half/good"}}, compiled{Rules: half, Warnings: []string{"Words other"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := compile(policies(documents, c.rules))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A typing error must not look like a policy that changes nothing, and much less
// apply what was to be left out.
func TestCompileUnknownChoice(t *testing.T) {
	documents := []engine.Document{document("Words", "p", "a b broken"), document("Words", "empty", ""), document("Words", "broken", "")}
	for name, c := range map[string]struct {
		rules engine.RuleFilter
		want  string
	}{
		"a rule is chosen":                      {engine.RuleFilter{Only: []string{"p/a"}}, ""},
		"a policy is chosen":                    {engine.RuleFilter{Only: []string{"p"}}, ""},
		"a policy is chosen by kind":            {engine.RuleFilter{Only: []string{"Words/p"}}, ""},
		"a policy without rules is chosen":      {engine.RuleFilter{Only: []string{"empty"}}, ""},
		"a rule is left out":                    {engine.RuleFilter{Skip: []string{"p/a"}}, ""},
		"a broken rule is left out":             {engine.RuleFilter{Skip: []string{"p/broken"}}, ""},
		"a rule is left out that is not chosen": {engine.RuleFilter{Only: []string{"p/a"}, Skip: []string{"p/b"}}, ""},
		"a broken rule is chosen":               {engine.RuleFilter{Only: []string{"p/broken"}}, ""},
		"a rule of a broken policy is chosen":   {engine.RuleFilter{Only: []string{"broken/a"}}, ""},
		"a rule of a broken policy is left out": {engine.RuleFilter{Skip: []string{"broken/a"}}, ""},
		"a chosen rule is left out":             {engine.RuleFilter{Only: []string{"p/a"}, Skip: []string{"p/a"}}, ""},
		"no such policy is chosen":              {engine.RuleFilter{Only: []string{"q"}}, "--only q: no such policy or rule"},
		"no such rule is chosen":                {engine.RuleFilter{Only: []string{"p/c"}}, "--only p/c: policy p has no mutate rule c; did you mean p/a?"},
		"one of two is not there":               {engine.RuleFilter{Only: []string{"p/a", "q/a"}}, "--only q/a: no such policy or rule; did you mean p/a?"},
		"no such policy is left out":            {engine.RuleFilter{Skip: []string{"q"}}, "--skip q: no such policy or rule"},
		"no such rule is left out":              {engine.RuleFilter{Skip: []string{"p/c"}}, "--skip p/c: policy p has no mutate rule c; did you mean p/a?"},
	} {
		t.Run(name, func(t *testing.T) {
			got := compile(policies(documents, c.rules))
			if got.Err != c.want {
				t.Errorf("got %q, want %q", got.Err, c.want)
			}
		})
	}
}

// What policies read besides a cluster is in use, but for Secrets.
func TestInUse(t *testing.T) {
	policy, exception, foreign := document("Words", "p", "a"), document("Exception", "x", ""), document("Secret", "s", "")
	settings := document("ConfigMap", "c", "")
	for name, c := range map[string]struct {
		documents []engine.Document
		want      []string
	}{
		"a policy and what it reads":   {[]engine.Document{foreign, policy, exception}, []string{"p", "x"}},
		"what lies over the cluster":   {[]engine.Document{settings, policy}, []string{"c", "p"}},
		"nothing that no policy reads": {[]engine.Document{exception, settings, foreign}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := policies(c.documents, engine.RuleFilter{})
			var got []string
			for _, d := range p.InUse() {
				got = append(got, d.Key.Name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if p.Documents[0].Object().GetName() != c.documents[0].Object().GetName() || len(p.Documents) != len(c.documents) {
				t.Error("the documents that were handed in are changed")
			}
		})
	}
}
