package admissionpolicy_test

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/admissionpolicy"
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
func request() *admissionpolicy.Request {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetLabels(map[string]string{"app": "web"})
	old := &unstructured.Unstructured{Object: map[string]any{}}
	old.SetLabels(map[string]string{"app": "old"})
	return &admissionpolicy.Request{
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Operation: engine.OperationUpdate,
		Namespace: "shop", Name: "web-1", Object: u, OldObject: old,
		NamespaceLabels: func() (map[string]string, error) { return map[string]string{"tier": "front"}, nil },
		Served:          func(version string) bool { return version == "v1beta1" },
	}
}

func TestJudge(t *testing.T) {
	all := []string{"*"}
	anything := admissionpolicy.Rule{Groups: all, Versions: all, Resources: all, Operations: all}
	pods := admissionpolicy.Rule{Groups: []string{""}, Versions: []string{"v1"}, Resources: []string{"pods"}, Operations: []string{"UPDATE"}}
	with := func(change func(*admissionpolicy.Rule)) []admissionpolicy.Rule {
		r := pods
		change(&r)
		return []admissionpolicy.Rule{r}
	}
	beta := with(func(r *admissionpolicy.Rule) { r.Versions = []string{"v1beta1"} })
	for name, c := range map[string]struct {
		constraints admissionpolicy.Constraints
		change      func(*admissionpolicy.Request)
		want        admissionpolicy.Verdict
	}{
		"no rules select everything":       {},
		"a rule that names it":             {constraints: admissionpolicy.Constraints{Rules: []admissionpolicy.Rule{pods}}},
		"wildcards":                        {constraints: admissionpolicy.Constraints{Rules: []admissionpolicy.Rule{anything}}},
		"all subresources, and itself":     {constraints: admissionpolicy.Constraints{Rules: with(func(r *admissionpolicy.Rule) { r.Resources = []string{"pods/*"} })}},
		"a subresource alone":              {constraints: admissionpolicy.Constraints{Rules: with(func(r *admissionpolicy.Rule) { r.Resources = []string{"pods/status"} })}, want: admissionpolicy.Verdict{Miss: admissionpolicy.ByResource}},
		"another group":                    {constraints: admissionpolicy.Constraints{Rules: with(func(r *admissionpolicy.Rule) { r.Groups = []string{"apps"} })}, want: admissionpolicy.Verdict{Miss: admissionpolicy.ByResource}},
		"another name":                     {constraints: admissionpolicy.Constraints{Rules: with(func(r *admissionpolicy.Rule) { r.Names = []string{"web-2"} })}, want: admissionpolicy.Verdict{Miss: admissionpolicy.ByResource}},
		"another operation":                {constraints: admissionpolicy.Constraints{Rules: with(func(r *admissionpolicy.Rule) { r.Operations = []string{"CREATE"} })}, want: admissionpolicy.Verdict{Miss: admissionpolicy.ByOperation}},
		"its scope":                        {constraints: admissionpolicy.Constraints{Rules: with(func(r *admissionpolicy.Rule) { r.Scope = "Namespaced" })}},
		"another scope":                    {constraints: admissionpolicy.Constraints{Rules: with(func(r *admissionpolicy.Rule) { r.Scope = "Cluster" })}, want: admissionpolicy.Verdict{Miss: admissionpolicy.ByResource}},
		"another version that is served":   {constraints: admissionpolicy.Constraints{Rules: beta, Equivalent: true}, want: admissionpolicy.Verdict{Version: "v1beta1"}},
		"another version, exactly":         {constraints: admissionpolicy.Constraints{Rules: beta}, want: admissionpolicy.Verdict{Miss: admissionpolicy.ByResource}},
		"another version that is not":      {constraints: admissionpolicy.Constraints{Rules: with(func(r *admissionpolicy.Rule) { r.Versions = []string{"v2"} }), Equivalent: true}, want: admissionpolicy.Verdict{Miss: admissionpolicy.ByResource}},
		"its own version before others":    {constraints: admissionpolicy.Constraints{Rules: append(beta, pods), Equivalent: true}},
		"excluded":                         {constraints: admissionpolicy.Constraints{Rules: []admissionpolicy.Rule{anything}, Excluded: []admissionpolicy.Rule{pods}}, want: admissionpolicy.Verdict{Miss: admissionpolicy.ByExclusion}},
		"excluded in an equivalent":        {constraints: admissionpolicy.Constraints{Excluded: beta, Equivalent: true}, want: admissionpolicy.Verdict{Miss: admissionpolicy.ByExclusion}},
		"labels of the object":             {constraints: admissionpolicy.Constraints{Objects: labelled(t, "app", "web")}},
		"labels that it had":               {constraints: admissionpolicy.Constraints{Objects: labelled(t, "app", "old")}},
		"labels that it never had":         {constraints: admissionpolicy.Constraints{Objects: labelled(t, "app", "db")}, want: admissionpolicy.Verdict{Miss: admissionpolicy.ByObjectSelector}},
		"labels of the Namespace":          {constraints: admissionpolicy.Constraints{Namespaces: labelled(t, "tier", "front")}},
		"other labels of the Namespace":    {constraints: admissionpolicy.Constraints{Namespaces: labelled(t, "tier", "back")}, want: admissionpolicy.Verdict{Miss: admissionpolicy.ByNamespaceSelector}},
		"the operation alone is not it":    {constraints: admissionpolicy.Constraints{Namespaces: labelled(t, "tier", "back"), Rules: with(func(r *admissionpolicy.Rule) { r.Operations = nil })}, want: admissionpolicy.Verdict{Miss: admissionpolicy.ByNamespaceSelector}},
		"what has no namespace":            {admissionpolicy.Constraints{Namespaces: labelled(t, "tier", "back")}, func(r *admissionpolicy.Request) { r.Namespace = "" }, admissionpolicy.Verdict{}},
		"a Namespace, by its own labels":   {admissionpolicy.Constraints{Namespaces: labelled(t, "app", "web")}, func(r *admissionpolicy.Request) { r.Resource.Resource = "namespaces" }, admissionpolicy.Verdict{}},
		"a Namespace is in no namespace":   {admissionpolicy.Constraints{Rules: []admissionpolicy.Rule{{Groups: all, Versions: all, Resources: all, Operations: all, Scope: "Cluster"}}}, func(r *admissionpolicy.Request) { r.Resource.Resource = "namespaces" }, admissionpolicy.Verdict{}},
		"a Namespace that nobody asks for": {admissionpolicy.Constraints{Rules: with(func(r *admissionpolicy.Rule) { r.Groups = nil }), Namespaces: labelled(t, "a", "b")}, unreadable, admissionpolicy.Verdict{Miss: admissionpolicy.ByResource}},
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
	pods := admissionpolicy.Rule{
		Groups: []string{""}, Versions: []string{"v1"}, Resources: []string{"pods", "pods/resize"}, Operations: []string{"UPDATE", "CREATE"},
		Names: []string{"web-2"}, Scope: "Namespaced",
	}
	workloads := admissionpolicy.Rule{Groups: []string{"apps", "batch"}, Versions: []string{"*"}, Resources: []string{"*"}, Scope: "*"}
	c := admissionpolicy.Constraints{
		Rules: []admissionpolicy.Rule{pods, workloads}, Excluded: []admissionpolicy.Rule{workloads},
		Objects: labelled(t, "app", "db"), Namespaces: labelled(t, "tier", "back"),
	}
	for miss, want := range map[admissionpolicy.Miss]string{
		admissionpolicy.ByOperation:         "operations: wants CREATE or UPDATE, is UPDATE",
		admissionpolicy.ByExclusion:         `excludeResourceRules: wants none of * of apps/*, batch/*, is pods of v1 named "web-2"`,
		admissionpolicy.ByObjectSelector:    "objectSelector: wants app=db, has app=web",
		admissionpolicy.ByNamespaceSelector: "namespaceSelector: wants tier=back, the Namespace has tier=front",
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

func unreadable(r *admissionpolicy.Request) {
	r.NamespaceLabels = func() (map[string]string, error) { return nil, errors.New("forbidden") }
}

func TestANamespaceThatCannotBeReadIsAnErrorWhereAllElseMatches(t *testing.T) {
	r := request()
	unreadable(r)
	c := admissionpolicy.Constraints{Namespaces: labelled(t, "tier", "front")}
	if _, err := c.Judge(r); err == nil || err.Error() != "namespaceSelector: forbidden" {
		t.Errorf("got %v", err)
	}
}
