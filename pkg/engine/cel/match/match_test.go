package match_test

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel/match"
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

// surroundings know the labels of a Namespace, and serve v1beta1 beside v1.
type surroundings struct {
	labels map[string]string
	err    error
}

func (s surroundings) NamespaceLabels([]string) (map[string]string, error) { return s.labels, s.err }

func (surroundings) Served(version string) bool { return version == "v1beta1" }

// request is an update of a Pod in a Namespace of the front tier.
func request() *match.Candidate {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetLabels(map[string]string{"app": "web"})
	old := &unstructured.Unstructured{Object: map[string]any{}}
	old.SetLabels(map[string]string{"app": "old"})
	return &match.Candidate{
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Operation: engine.OperationUpdate,
		Namespace: "shop", Name: "web-1", Object: u, OldObject: old,
		Surroundings: surroundings{labels: map[string]string{"tier": "front"}},
	}
}

func TestMatch(t *testing.T) {
	all, everything := []string{"*"}, []match.Resource{{Name: "*"}}
	anything := match.Rule{Groups: all, Versions: all, Resources: everything, Operations: all}
	pods := match.Rule{Groups: []string{""}, Versions: []string{"v1"}, Resources: []match.Resource{{Name: "pods"}}, Operations: []string{"UPDATE"}}
	with := func(change func(*match.Rule)) []match.Rule {
		r := pods
		change(&r)
		return []match.Rule{r}
	}
	beta := with(func(r *match.Rule) { r.Versions = []string{"v1beta1"} })
	for name, c := range map[string]struct {
		constraints match.Constraints
		change      func(*match.Candidate)
		want        string // the criterion, and the version
	}{
		"no rules select everything":       {},
		"a rule that names it":             {constraints: match.Constraints{Rules: []match.Rule{pods}}},
		"wildcards":                        {constraints: match.Constraints{Rules: []match.Rule{anything}}},
		"all subresources, and itself":     {constraints: match.Constraints{Rules: with(func(r *match.Rule) { r.Resources = []match.Resource{{"pods", "*"}} })}},
		"a subresource alone":              {constraints: match.Constraints{Rules: with(func(r *match.Rule) { r.Resources = []match.Resource{{"pods", "status"}} })}, want: "resourceRules"},
		"another group":                    {constraints: match.Constraints{Rules: with(func(r *match.Rule) { r.Groups = []string{"apps"} })}, want: "resourceRules"},
		"another name":                     {constraints: match.Constraints{Rules: with(func(r *match.Rule) { r.Names = []string{"web-2"} })}, want: "resourceRules"},
		"another operation":                {constraints: match.Constraints{Rules: with(func(r *match.Rule) { r.Operations = []string{"CREATE"} })}, want: "operations"},
		"its scope":                        {constraints: match.Constraints{Rules: with(func(r *match.Rule) { r.Scope = "Namespaced" })}},
		"another scope":                    {constraints: match.Constraints{Rules: with(func(r *match.Rule) { r.Scope = "Cluster" })}, want: "resourceRules"},
		"another version that is served":   {constraints: match.Constraints{Rules: beta, Equivalent: true}, want: "v1beta1"},
		"another version, exactly":         {constraints: match.Constraints{Rules: beta}, want: "apiVersions v1beta1"},
		"another version that is not":      {constraints: match.Constraints{Rules: with(func(r *match.Rule) { r.Versions = []string{"v2"} }), Equivalent: true}, want: "apiVersions"},
		"its own version before others":    {constraints: match.Constraints{Rules: append(beta, pods), Equivalent: true}},
		"excluded":                         {constraints: match.Constraints{Rules: []match.Rule{anything}, Excluded: []match.Rule{pods}}, want: "excludeResourceRules"},
		"excluded in an equivalent":        {constraints: match.Constraints{Excluded: beta, Equivalent: true}, want: "excludeResourceRules"},
		"labels of the object":             {constraints: match.Constraints{Objects: labelled(t, "app", "web")}},
		"labels that it had":               {constraints: match.Constraints{Objects: labelled(t, "app", "old")}},
		"labels that it never had":         {constraints: match.Constraints{Objects: labelled(t, "app", "db")}, want: "objectSelector"},
		"labels of the Namespace":          {constraints: match.Constraints{Namespaces: labelled(t, "tier", "front")}},
		"other labels of the Namespace":    {constraints: match.Constraints{Namespaces: labelled(t, "tier", "back")}, want: "namespaceSelector"},
		"the operation alone is not it":    {constraints: match.Constraints{Namespaces: labelled(t, "tier", "back"), Rules: with(func(r *match.Rule) { r.Operations = nil })}, want: "namespaceSelector"},
		"what has no namespace":            {match.Constraints{Namespaces: labelled(t, "tier", "back")}, func(r *match.Candidate) { r.Namespace = "" }, ""},
		"a Namespace, by its own labels":   {match.Constraints{Namespaces: labelled(t, "app", "web")}, func(r *match.Candidate) { r.Resource.Resource = "namespaces" }, ""},
		"a Namespace is in no namespace":   {match.Constraints{Rules: []match.Rule{{Groups: all, Versions: all, Resources: everything, Operations: all, Scope: "Cluster"}}}, func(r *match.Candidate) { r.Resource.Resource = "namespaces" }, ""},
		"another version and operation":    {constraints: match.Constraints{Rules: with(func(r *match.Rule) { r.Versions, r.Operations = []string{"v1beta1"}, nil }), Equivalent: true}, want: "operations"},
		"excluded in another, exactly":     {constraints: match.Constraints{Excluded: beta}},
		"any operation":                    {match.Constraints{Rules: with(func(r *match.Rule) { r.Operations = nil })}, func(r *match.Candidate) { r.Operation = "" }, ""},
		"an operation that decides alone":  {match.Constraints{Rules: with(func(r *match.Rule) { r.Operations = nil }), Namespaces: labelled(t, "a", "b")}, unreadable, "operations"},
		"labels of a creation":             {match.Constraints{Objects: labelled(t, "app", "old")}, func(r *match.Candidate) { r.OldObject = nil }, "objectSelector"},
		"excluded on creation":             {constraints: match.Constraints{Excluded: with(func(r *match.Rule) { r.Operations = []string{"CREATE"} })}},
		"excluded in another, on creation": {constraints: match.Constraints{Excluded: with(func(r *match.Rule) { r.Versions, r.Operations = []string{"v1beta1"}, []string{"CREATE"} }), Equivalent: true}},
		"another version, elsewhere":       {constraints: match.Constraints{Rules: beta, Namespaces: labelled(t, "tier", "back")}, want: "apiVersions v1beta1"},
		"namespaces of another group":      {match.Constraints{Namespaces: labelled(t, "tier", "front")}, func(r *match.Candidate) { r.Resource.Group, r.Resource.Resource = "example.com", "namespaces" }, ""},
		"a name that came of a prefix":     {match.Constraints{Rules: with(func(r *match.Rule) { r.Names = []string{"web"} })}, func(r *match.Candidate) { r.GenerateName = "web-" }, "resourceRules"},
		"a status, by all of its resource": {match.Constraints{Rules: with(func(r *match.Rule) { r.Resources = []match.Resource{{"pods", "*"}} })}, func(r *match.Candidate) { r.Subresource = "status" }, ""},
		"a status, by its resource alone":  {match.Constraints{Rules: []match.Rule{pods}}, func(r *match.Candidate) { r.Subresource = "status" }, "resourceRules"},
		"a Namespace's status":             {match.Constraints{Namespaces: labelled(t, "app", "web")}, func(r *match.Candidate) { r.Resource.Resource, r.Subresource = "namespaces", "status" }, ""},
		"a Namespace that nobody asks for": {match.Constraints{Rules: with(func(r *match.Rule) { r.Groups = nil }), Namespaces: labelled(t, "a", "b")}, unreadable, "resourceRules"},
	} {
		t.Run(name, func(t *testing.T) {
			r := request()
			if c.change != nil {
				c.change(r)
			}
			result, err := c.constraints.Match(r)
			if err != nil {
				t.Fatal(err)
			}
			got := result.Version
			if !result.Applies() {
				got = strings.TrimSpace(c.constraints.Explain(result, r).Criterion + " " + got)
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestExplain(t *testing.T) {
	pods := match.Rule{
		Groups: []string{""}, Versions: []string{"v1"}, Resources: []match.Resource{{Name: "pods"}, {"pods", "resize"}}, Operations: []string{"UPDATE", "CREATE"},
		Names: []string{"web-2"}, Scope: "Namespaced",
	}
	workloads := match.Rule{Groups: []string{"apps", "batch"}, Versions: []string{"*"}, Resources: []match.Resource{{Name: "*"}}, Scope: "*"}
	of := func(change func(*match.Constraints)) match.Constraints {
		c := match.Constraints{Rules: []match.Rule{pods, workloads}}
		change(&c)
		return c
	}
	for want, c := range map[string]match.Constraints{
		"operations: wants CREATE, is UPDATE": of(func(c *match.Constraints) { c.Rules[0].Operations = []string{"CREATE", "CREATE"} }),
		"operations: wants none, is UPDATE":   of(func(c *match.Constraints) { c.Rules[0].Operations = nil }),
		`excludeResourceRules: wants none of * of *, apps/*, is pods of v1 named "web-2"`: of(func(c *match.Constraints) {
			c.Excluded = []match.Rule{{Groups: []string{"", "apps"}, Versions: []string{"*"}, Resources: workloads.Resources, Operations: pods.Operations}}
		}),
		"objectSelector: wants app=db, has app=web":                        of(func(c *match.Constraints) { c.Objects = labelled(t, "app", "db") }),
		"namespaceSelector: wants tier=back, the Namespace has tier=front": of(func(c *match.Constraints) { c.Namespaces = labelled(t, "tier", "back") }),
		`apiVersions: wants pods, pods/resize of v2 named web-2 in scope Namespaced, or * of apps/*, batch/*, is pods of v1 named "web-2"`: of(func(c *match.Constraints) {
			c.Rules[0].Versions = []string{"v2"}
		}),
	} {
		r := request()
		r.Name = "web-2"
		result, err := c.Match(r)
		if got := c.Explain(result, r).Error(); err != nil || result.Applies() || got != want {
			t.Errorf("got  %s (%v)\nwant %s", got, err, want)
		}
		r.Name = "web-1"
		if result, err = c.Match(r); err != nil || !strings.HasPrefix(c.Explain(result, r).Error(), "resourceRules: wants pods, pods/resize of v") {
			t.Errorf("of another resource: got %s (%v)", c.Explain(result, r), err)
		}
	}
}

// A server need not be asked for the Namespace of what the rules do not name anyway.
func TestMatchReadsNoNamespaceInVain(t *testing.T) {
	r := request()
	r.Surroundings = untouched{t}
	c := constraints(t, `{namespaceSelector: {matchLabels: {tier: gold}}, resourceRules: [`+pods+`}]}`)
	for _, resource := range []string{"nodes", "services"} {
		r.Resource.Resource = resource
		if result, err := c.Match(r); err != nil || result.Applies() {
			t.Errorf("%s: %v, applies: %t", resource, err, result.Applies())
		}
	}
}

type untouched struct{ *testing.T }

func (u untouched) NamespaceLabels([]string) (map[string]string, error) {
	u.Error("the Namespace is read")
	return nil, nil
}

func (untouched) Served(string) bool { return false }

func unreadable(r *match.Candidate) {
	r.Surroundings = surroundings{err: errors.New("forbidden")}
}

func TestMatchWithoutTheNamespace(t *testing.T) {
	r := request()
	unreadable(r)
	c := match.Constraints{Namespaces: labelled(t, "tier", "front")}
	if _, err := c.Match(r); err == nil || err.Error() != "namespaceSelector: forbidden" {
		t.Errorf("got %v", err)
	}
}

func constraints(t *testing.T, text string) *match.Constraints {
	t.Helper()
	var value map[string]any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	r := &policydecode.Report{Warn: func(engine.CompileError) {}}
	c := match.Decode(policydecode.Node{Report: r, Value: value}.Fields(), func(n policydecode.Node) { n.Fail("is missing") })
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return c
}

const pods = `{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]`
