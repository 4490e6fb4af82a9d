package cel_test

import (
	"errors"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

func labelled(t *testing.T, key, value string) *selector.Labels {
	t.Helper()
	l, err := selector.NewLabels(&metav1.LabelSelector{MatchLabels: map[string]string{key: value}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// served is v1beta1, beside v1.
type served struct{ meta.RESTMapper }

func (served) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if versions[0] != "v1beta1" {
		return nil, errors.New("is not served")
	}
	return &meta.RESTMapping{GroupVersionKind: gk.WithVersion(versions[0])}, nil
}

// candidate is an update of a Pod in a Namespace of the front tier.
func candidate(t *testing.T) *cel.Candidate {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetLabels(map[string]string{"app": "web"})
	old := &unstructured.Unstructured{Object: map[string]any{}}
	old.SetLabels(map[string]string{"app": "old"})
	namespace := engine.BareNamespace("shop")
	namespace.SetLabels(map[string]string{"tier": "front"})
	target := &engine.Target{
		Key:    engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "Pod"}, Version: "v1", Namespace: "shop", Name: "web-1"},
		Object: u, OldObject: old, Namespace: namespace,
		Mapping: &meta.RESTMapping{Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}},
	}
	return cel.CandidateOf(t.Context(), target, &engine.World{Mapper: served{}}, engine.OperationUpdate)
}

type operation = admissionregistrationv1.OperationType

func rule(group, version, resource string, operations ...operation) (r cel.Rule) {
	r.APIGroups, r.APIVersions, r.Resources, r.Operations = []string{group}, []string{version}, []string{resource}, operations
	return r
}

func scope(s admissionregistrationv1.ScopeType) *admissionregistrationv1.ScopeType { return &s }

func scoped(s admissionregistrationv1.ScopeType, r cel.Rule) cel.Rule {
	r.Scope = scope(s)
	return r
}

func TestMatch(t *testing.T) {
	anything, pods := rule("*", "*", "*", "*"), rule("", "v1", "pods", "UPDATE")
	with := func(change func(*cel.Rule)) []cel.Rule {
		r := pods
		change(&r)
		return []cel.Rule{r}
	}
	beta := with(func(r *cel.Rule) { r.APIVersions = []string{"v1beta1"} })
	for name, c := range map[string]struct {
		constraints cel.Constraints
		change      func(*cel.Candidate)
		want        string // the criterion, and the version
	}{
		"no rules select everything":       {},
		"a rule that names it":             {constraints: cel.Constraints{Rules: []cel.Rule{pods}}},
		"another name":                     {constraints: cel.Constraints{Rules: with(func(r *cel.Rule) { r.ResourceNames = []string{"web-2"} })}, want: "resourceRules"},
		"another operation":                {constraints: cel.Constraints{Rules: with(func(r *cel.Rule) { r.Operations = []operation{"CREATE"} })}, want: "operations"},
		"another version that is served":   {constraints: cel.Constraints{Rules: beta, Equivalent: true}, want: "v1beta1"},
		"another version, exactly":         {constraints: cel.Constraints{Rules: beta}, want: "apiVersions v1beta1"},
		"another version that is not":      {constraints: cel.Constraints{Rules: with(func(r *cel.Rule) { r.APIVersions = []string{"v2"} }), Equivalent: true}, want: "apiVersions"},
		"its own version before others":    {constraints: cel.Constraints{Rules: append(beta, pods), Equivalent: true}},
		"excluded":                         {constraints: cel.Constraints{Rules: []cel.Rule{anything}, Excluded: []cel.Rule{pods}}, want: "excludeResourceRules"},
		"excluded in an equivalent":        {constraints: cel.Constraints{Excluded: beta, Equivalent: true}, want: "excludeResourceRules"},
		"labels of the object":             {constraints: cel.Constraints{Objects: labelled(t, "app", "web")}},
		"labels that it had":               {constraints: cel.Constraints{Objects: labelled(t, "app", "old")}},
		"labels that it never had":         {constraints: cel.Constraints{Objects: labelled(t, "app", "db")}, want: "objectSelector"},
		"other labels of the Namespace":    {constraints: cel.Constraints{Namespaces: labelled(t, "tier", "back")}, want: "namespaceSelector"},
		"what has no namespace":            {cel.Constraints{Namespaces: labelled(t, "tier", "back")}, func(r *cel.Candidate) { r.Target.Key.Namespace = "" }, ""},
		"a Namespace, by its own labels":   {cel.Constraints{Namespaces: labelled(t, "app", "web")}, func(r *cel.Candidate) { r.Resource.Resource = "namespaces" }, ""},
		"a Namespace is in no namespace":   {cel.Constraints{Rules: []cel.Rule{scoped("Cluster", anything)}}, func(r *cel.Candidate) { r.Resource.Resource = "namespaces" }, ""},
		"another version and operation":    {constraints: cel.Constraints{Rules: with(func(r *cel.Rule) { r.APIVersions, r.Operations = []string{"v1beta1"}, nil }), Equivalent: true}, want: "operations"},
		"excluded in another, exactly":     {constraints: cel.Constraints{Excluded: beta}},
		"an operation that decides alone":  {cel.Constraints{Rules: with(func(r *cel.Rule) { r.Operations = nil }), Namespaces: labelled(t, "a", "b")}, unreadable, "operations"},
		"labels of a creation":             {cel.Constraints{Objects: labelled(t, "app", "old")}, func(r *cel.Candidate) { r.Target.OldObject = nil }, "objectSelector"},
		"excluded in another, on creation": {constraints: cel.Constraints{Excluded: with(func(r *cel.Rule) { r.APIVersions, r.Operations = []string{"v1beta1"}, []operation{"CREATE"} }), Equivalent: true}},
		"another version, elsewhere":       {constraints: cel.Constraints{Rules: beta, Namespaces: labelled(t, "tier", "back")}, want: "apiVersions v1beta1"},
		"a name that came of a prefix":     {cel.Constraints{Rules: with(func(r *cel.Rule) { r.ResourceNames = []string{"web"} })}, func(r *cel.Candidate) { r.GenerateName = "web-" }, "resourceRules"},
		"a Namespace's status":             {cel.Constraints{Namespaces: labelled(t, "app", "web")}, func(r *cel.Candidate) { r.Resource.Resource, r.Target.Key.Subresource = "namespaces", "status" }, ""},
		"a Namespace that nobody asks for": {cel.Constraints{Rules: with(func(r *cel.Rule) { r.APIGroups = nil }), Namespaces: labelled(t, "a", "b")}, unreadable, "resourceRules"},
	} {
		t.Run(name, func(t *testing.T) {
			r := candidate(t)
			if c.change != nil {
				c.change(r)
			}
			result, err := c.constraints.Match(r)
			if err != nil {
				t.Fatal(err)
			}
			got := result.Version
			if !result.Applies() {
				var mismatch engine.Mismatch
				errors.As(result.Why(), &mismatch)
				got = strings.TrimSpace(mismatch.Criterion + " " + got)
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestExplain(t *testing.T) {
	pods, workloads := scoped("Namespaced", rule("", "v1", "pods", "UPDATE", "CREATE")), scoped("*", rule("apps", "*", "*"))
	pods.Resources, pods.ResourceNames = append(pods.Resources, "pods/resize"), []string{"web-2"}
	workloads.APIGroups = append(workloads.APIGroups, "batch")
	of := func(change func(*cel.Constraints)) cel.Constraints {
		c := cel.Constraints{Rules: []cel.Rule{pods, workloads}}
		change(&c)
		return c
	}
	for want, c := range map[string]cel.Constraints{
		"operations: wants CREATE, is UPDATE": of(func(c *cel.Constraints) { c.Rules[0].Operations = []operation{"CREATE", "CREATE"} }),
		"operations: wants none, is UPDATE":   of(func(c *cel.Constraints) { c.Rules[0].Operations = nil }),
		`excludeResourceRules: wants none of * of *, apps/*, is pods of v1 named "web-2"`: of(func(c *cel.Constraints) {
			c.Excluded = []cel.Rule{rule("", "*", "*", "UPDATE", "CREATE")}
			c.Excluded[0].APIGroups = []string{"", "apps"}
		}),
		"objectSelector: wants app=db, has app=web":                        of(func(c *cel.Constraints) { c.Objects = labelled(t, "app", "db") }),
		"namespaceSelector: wants tier=back, the Namespace has tier=front": of(func(c *cel.Constraints) { c.Namespaces = labelled(t, "tier", "back") }),
		`apiVersions: wants pods, pods/resize of v2 named web-2 in scope Namespaced, or * of apps/*, batch/*, is pods of v1 named "web-2"`: of(func(c *cel.Constraints) {
			c.Rules[0].APIVersions = []string{"v2"}
		}),
	} {
		r := candidate(t)
		r.Target.Key.Name = "web-2"
		result, err := c.Match(r)
		if got := result.Why().Error(); err != nil || result.Applies() || got != want {
			t.Errorf("got  %s (%v)\nwant %s", got, err, want)
		}
		r.Target.Key.Name = "web-1"
		if result, err = c.Match(r); err != nil || !strings.HasPrefix(result.Why().Error(), "resourceRules: wants pods, pods/resize of v") {
			t.Errorf("of another resource: got %s (%v)", result.Why(), err)
		}
	}
}

// A server need not be asked for the Namespace of what the rules do not name anyway.
func TestMatchReadsNoNamespaceInVain(t *testing.T) {
	r := candidate(t)
	unreadable(r)
	c := constraints(t, `{namespaceSelector: {matchLabels: {tier: gold}}, resourceRules: [`+createdPods+`}]}`)
	for _, resource := range []string{"nodes", "services"} {
		r.Resource.Resource = resource
		if result, err := c.Match(r); err != nil || result.Applies() {
			t.Errorf("%s: %v, applies: %t", resource, err, result.Applies())
		}
	}
}

// unreadable lets a look at the Namespace fail.
func unreadable(r *cel.Candidate) { r.Target.Namespace = nil }

func constraints(t *testing.T, text string) *cel.Constraints {
	t.Helper()
	var value map[string]any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	r := &policydecode.Report{}
	c := cel.DecodeConstraints(policydecode.Node{Report: r, Value: value}.Fields(), func(n policydecode.Node) { n.Fail("is missing") })
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return c
}

const createdPods = `{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]`
