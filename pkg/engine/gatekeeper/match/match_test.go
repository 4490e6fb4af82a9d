package match_test

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/gatekeeper/match"
)

func TestAnyGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"kube-system", "kube-system", true},
		{"kube-system", "kube", false},
		{"kube-*", "kube-system", true},
		{"kube-*", "my-kube-system", false},
		{"*-system", "kube-system", true},
		{"*-system", "kube-system-2", false},
		{"*sys*", "kube-system", true},
		{"*sys*", "kube", false},
		{"*", "", true},
		{"*", "any", true},
		{"k*e", "kube", false},
		{"k*e", "k*e", true},
		{"k*e*", "k*e-x", true},
		{"ku?e", "kube", false},
	} {
		if got := match.AnyGlob([]string{c.pattern}, c.name); got != c.want {
			t.Errorf("%q matches %q: %t, want %t", c.pattern, c.name, got, c.want)
		}
	}
}

func TestMatch(t *testing.T) {
	pods := []match.ApplyTo{{Groups: []string{""}, Versions: []string{"v1"}, Kinds: []string{"Pod"}}}
	only := func(operations ...string) []match.ApplyTo {
		a := pods[0]
		a.Operations = operations
		return []match.ApplyTo{a}
	}
	front := labels.SelectorFromSet(labels.Set{"tier": "front"})
	pod := candidate("Pod", "shop", "web")
	node := candidate("Node", "", "n1")
	namespace := candidate("Namespace", "", "shop")
	for _, c := range []struct {
		says     string
		criteria match.Criteria
		on       match.Candidate
		want     string // the reason; empty where it matches
	}{
		{"no criteria match everything", match.Criteria{}, node, ""},
		{"the type of applyTo", match.Criteria{ApplyTo: pods}, pod, ""},
		{"another type", match.Criteria{ApplyTo: pods}, node, "applyTo: wants v1/Pod, is v1/Node"},
		{"applyTo takes no wildcards", match.Criteria{ApplyTo: []match.ApplyTo{{Groups: []string{"*"}, Versions: []string{"*"}, Kinds: []string{"*"}}}}, pod, "applyTo: wants */*/*, is v1/Pod"},
		{"an operation", match.Criteria{ApplyTo: only("UPDATE")}, pod, ""},
		{"any operation", match.Criteria{ApplyTo: only("*")}, pod, ""},
		{"another operation", match.Criteria{ApplyTo: only("CREATE")}, pod, "applyTo.operations: wants CREATE, is UPDATE"},
		{"the operation of another entry does not count", match.Criteria{ApplyTo: append(only("CREATE"), match.ApplyTo{
			Groups: []string{""}, Versions: []string{"v1"}, Kinds: []string{"Node"}, Operations: []string{"UPDATE"},
		})}, pod, "applyTo.operations: wants CREATE, is UPDATE"},
		{"kinds of any group", match.Criteria{Kinds: []match.Kinds{{APIGroups: []string{"*"}, Kinds: []string{"Pod"}}}}, pod, ""},
		{"empty lists of kinds", match.Criteria{Kinds: []match.Kinds{{}}}, pod, ""},
		{"other kinds", match.Criteria{Kinds: []match.Kinds{{APIGroups: []string{"apps"}, Kinds: []string{"*"}}}}, pod, "kinds: wants apps/*, is Pod"},
		{"in a namespace", match.Criteria{Scope: match.Namespaced}, pod, ""},
		{"a Namespace is of the cluster", match.Criteria{Scope: match.Namespaced}, namespace, "scope: wants Namespaced, is Cluster"},
		{"of the cluster", match.Criteria{Scope: match.Cluster}, node, ""},
		{"not of the cluster", match.Criteria{Scope: match.Cluster}, pod, "scope: wants Cluster, is Namespaced"},
		{"a scope that is none filters nothing", match.Criteria{Scope: "Namespaced | Cluster"}, node, ""},
		{"the namespace", match.Criteria{Namespaces: []string{"other", "sh*"}}, pod, ""},
		{"another namespace", match.Criteria{Namespaces: []string{"other"}}, pod, "namespaces: wants other, is shop"},
		{"a Namespace by its name", match.Criteria{Namespaces: []string{"shop"}}, namespace, ""},
		{"no namespace", match.Criteria{Namespaces: []string{"*"}}, node, "namespaces: wants *, has none"},
		{"excluded", match.Criteria{ExcludedNamespaces: []string{"sh*"}}, pod, "excludedNamespaces: wants none of sh*, is shop"},
		{"excluded wins", match.Criteria{Namespaces: []string{"shop"}, ExcludedNamespaces: []string{"shop"}}, pod, "excludedNamespaces: wants none of shop, is shop"},
		{"what is in no namespace cannot be excluded", match.Criteria{ExcludedNamespaces: []string{"*"}}, node, ""},
		{"labels", match.Criteria{Labels: labels.SelectorFromSet(labels.Set{"app": "web"})}, pod, ""},
		{"other labels", match.Criteria{Labels: front}, pod, "labelSelector: wants tier=front, is app=web"},
		{"labels of the Namespace", match.Criteria{NamespaceLabels: front}, in(pod, "tier", "front"), ""},
		{"other labels of the Namespace", match.Criteria{NamespaceLabels: front}, in(pod, "tier", "back"), "namespaceSelector: wants tier=front, is tier=back"},
		{"labels of no Namespace", match.Criteria{NamespaceLabels: front}, node, "namespaceSelector: wants tier=front, has none"},
		{"a Namespace by its own labels", match.Criteria{NamespaceLabels: labels.SelectorFromSet(labels.Set{"app": "web"})}, namespace, ""},
		{"a name", match.Criteria{Name: "w*"}, pod, ""},
		{"another name", match.Criteria{Name: "x*"}, pod, "name: wants x*, is web"},
		{"generated objects are nowhere", match.Criteria{Source: match.Generated}, pod, "source: wants Generated, is Original"},
		{"original objects are everywhere", match.Criteria{Source: "Original"}, pod, ""},
		{"the first criterion is reported", match.Criteria{ApplyTo: pods, Scope: match.Cluster, Name: "x"}, pod, "scope: wants Cluster, is Namespaced"},
	} {
		t.Run(c.says, func(t *testing.T) {
			result, err := c.criteria.Match(&c.on)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if !result.Applies() {
				got = c.criteria.Explain(result, &c.on).Error()
			}
			if got != c.want {
				t.Errorf("\n got %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestMatchWithoutTheNamespace(t *testing.T) {
	pod := candidate("Pod", "shop", "web")
	c := match.Criteria{NamespaceLabels: labels.SelectorFromSet(labels.Set{"tier": "front"})}
	if _, err := c.Match(&pod); !errors.Is(err, match.ErrNoNamespace) {
		t.Errorf("got %v", err)
	}
	c.NamespaceLabels = labels.SelectorFromSet(labels.Set{"kubernetes.io/metadata.name": "shop"})
	if r, err := c.Match(&pod); err != nil || !r.Applies() {
		t.Errorf("its name: %v, error %v", r, err)
	}
}

func candidate(kind, namespace, name string) match.Candidate {
	return match.Candidate{
		Key:       engine.ObjectKey{GroupKind: schema.GroupKind{Kind: kind}, Version: "v1", Namespace: namespace, Name: name},
		Object:    map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}},
		Operation: engine.OperationUpdate,
	}
}

func in(c match.Candidate, key, value string) match.Candidate {
	c.Namespace = &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"labels": map[string]any{key: value}}}}
	return c
}
