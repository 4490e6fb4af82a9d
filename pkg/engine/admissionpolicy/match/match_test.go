package match_test

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/admissionpolicy/match"
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

// request is an update of a Pod in a Namespace of the front tier.
func request() *match.Request {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetLabels(map[string]string{"app": "web"})
	old := &unstructured.Unstructured{Object: map[string]any{}}
	old.SetLabels(map[string]string{"app": "old"})
	return &match.Request{
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Operation: engine.OperationUpdate,
		Namespace: "shop", Name: "web-1", Object: u, OldObject: old,
		NamespaceLabels: func() (map[string]string, error) { return map[string]string{"tier": "front"}, nil },
		Served:          func(version string) bool { return version == "v1beta1" },
	}
}

func TestJudge(t *testing.T) {
	all := []string{"*"}
	anything := match.Rule{Groups: all, Versions: all, Resources: all, Operations: all}
	pods := match.Rule{Groups: []string{""}, Versions: []string{"v1"}, Resources: []string{"pods"}, Operations: []string{"UPDATE"}}
	with := func(change func(*match.Rule)) []match.Rule {
		r := pods
		change(&r)
		return []match.Rule{r}
	}
	beta := with(func(r *match.Rule) { r.Versions = []string{"v1beta1"} })
	for name, c := range map[string]struct {
		constraints match.Constraints
		change      func(*match.Request)
		want        match.Verdict
	}{
		"no rules select everything":       {},
		"a rule that names it":             {constraints: match.Constraints{Rules: []match.Rule{pods}}},
		"wildcards":                        {constraints: match.Constraints{Rules: []match.Rule{anything}}},
		"all subresources, and itself":     {constraints: match.Constraints{Rules: with(func(r *match.Rule) { r.Resources = []string{"pods/*"} })}},
		"a subresource alone":              {constraints: match.Constraints{Rules: with(func(r *match.Rule) { r.Resources = []string{"pods/status"} })}, want: match.Verdict{Miss: match.ByResource}},
		"another group":                    {constraints: match.Constraints{Rules: with(func(r *match.Rule) { r.Groups = []string{"apps"} })}, want: match.Verdict{Miss: match.ByResource}},
		"another name":                     {constraints: match.Constraints{Rules: with(func(r *match.Rule) { r.Names = []string{"web-2"} })}, want: match.Verdict{Miss: match.ByResource}},
		"another operation":                {constraints: match.Constraints{Rules: with(func(r *match.Rule) { r.Operations = []string{"CREATE"} })}, want: match.Verdict{Miss: match.ByOperation}},
		"its scope":                        {constraints: match.Constraints{Rules: with(func(r *match.Rule) { r.Scope = "Namespaced" })}},
		"another scope":                    {constraints: match.Constraints{Rules: with(func(r *match.Rule) { r.Scope = "Cluster" })}, want: match.Verdict{Miss: match.ByResource}},
		"another version that is served":   {constraints: match.Constraints{Rules: beta, Equivalent: true}, want: match.Verdict{Version: "v1beta1"}},
		"another version, exactly":         {constraints: match.Constraints{Rules: beta}, want: match.Verdict{Miss: match.ByResource}},
		"another version that is not":      {constraints: match.Constraints{Rules: with(func(r *match.Rule) { r.Versions = []string{"v2"} }), Equivalent: true}, want: match.Verdict{Miss: match.ByResource}},
		"its own version before others":    {constraints: match.Constraints{Rules: append(beta, pods), Equivalent: true}},
		"excluded":                         {constraints: match.Constraints{Rules: []match.Rule{anything}, Excluded: []match.Rule{pods}}, want: match.Verdict{Miss: match.ByExclusion}},
		"excluded in an equivalent":        {constraints: match.Constraints{Excluded: beta, Equivalent: true}, want: match.Verdict{Miss: match.ByExclusion}},
		"labels of the object":             {constraints: match.Constraints{Objects: labelled(t, "app", "web")}},
		"labels that it had":               {constraints: match.Constraints{Objects: labelled(t, "app", "old")}},
		"labels that it never had":         {constraints: match.Constraints{Objects: labelled(t, "app", "db")}, want: match.Verdict{Miss: match.ByObjectSelector}},
		"labels of the Namespace":          {constraints: match.Constraints{Namespaces: labelled(t, "tier", "front")}},
		"other labels of the Namespace":    {constraints: match.Constraints{Namespaces: labelled(t, "tier", "back")}, want: match.Verdict{Miss: match.ByNamespaceSelector}},
		"the operation alone is not it":    {constraints: match.Constraints{Namespaces: labelled(t, "tier", "back"), Rules: with(func(r *match.Rule) { r.Operations = nil })}, want: match.Verdict{Miss: match.ByNamespaceSelector}},
		"what has no namespace":            {match.Constraints{Namespaces: labelled(t, "tier", "back")}, func(r *match.Request) { r.Namespace = "" }, match.Verdict{}},
		"a Namespace, by its own labels":   {match.Constraints{Namespaces: labelled(t, "app", "web")}, func(r *match.Request) { r.Resource.Resource = "namespaces" }, match.Verdict{}},
		"a Namespace is in no namespace":   {match.Constraints{Rules: []match.Rule{{Groups: all, Versions: all, Resources: all, Operations: all, Scope: "Cluster"}}}, func(r *match.Request) { r.Resource.Resource = "namespaces" }, match.Verdict{}},
		"a Namespace that nobody asks for": {match.Constraints{Rules: with(func(r *match.Rule) { r.Groups = nil }), Namespaces: labelled(t, "a", "b")}, unreadable, match.Verdict{Miss: match.ByResource}},
	} {
		t.Run(name, func(t *testing.T) {
			r := request()
			if c.change != nil {
				c.change(r)
			}
			got, err := c.constraints.Judge(r)
			if err != nil || got != c.want {
				t.Errorf("got %+v (%v), want %+v", got, err, c.want)
			}
		})
	}
}

func TestAReasonSaysWhatIsWantedAndWhatIsThere(t *testing.T) {
	pods := match.Rule{
		Groups: []string{""}, Versions: []string{"v1"}, Resources: []string{"pods", "pods/resize"}, Operations: []string{"UPDATE", "CREATE"},
		Names: []string{"web-2"}, Scope: "Namespaced",
	}
	workloads := match.Rule{Groups: []string{"apps", "batch"}, Versions: []string{"*"}, Resources: []string{"*"}, Scope: "*"}
	c := match.Constraints{
		Rules: []match.Rule{pods, workloads}, Excluded: []match.Rule{workloads},
		Objects: labelled(t, "app", "db"), Namespaces: labelled(t, "tier", "back"),
	}
	for miss, want := range map[match.Miss]string{
		match.ByOperation:         "operations: wants CREATE or UPDATE, is UPDATE",
		match.ByExclusion:         `excludeResourceRules: wants none of * of apps/*, batch/*, is pods of v1 named "web-2"`,
		match.ByObjectSelector:    "objectSelector: wants app=db, has app=web",
		match.ByNamespaceSelector: "namespaceSelector: wants tier=back, the Namespace has tier=front",
	} {
		r := request()
		r.Name = "web-2"
		if got := c.Reason(miss, r).Error(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		want = `resourceRules: wants pods, pods/resize of v1 named web-2 in scope Namespaced, or * of apps/*, batch/*, is pods of v1 named "web-1"`
		if got := c.Reason(miss, request()).Error(); got != want {
			t.Errorf("of another resource:\ngot  %s\nwant %s", got, want)
		}
	}
}

func unreadable(r *match.Request) {
	r.NamespaceLabels = func() (map[string]string, error) { return nil, errors.New("forbidden") }
}

func TestANamespaceThatCannotBeReadIsAnErrorWhereAllElseMatches(t *testing.T) {
	r := request()
	unreadable(r)
	c := match.Constraints{Namespaces: labelled(t, "tier", "front")}
	if _, err := c.Judge(r); err == nil || err.Error() != "namespaceSelector: forbidden" {
		t.Errorf("got %v", err)
	}
}
