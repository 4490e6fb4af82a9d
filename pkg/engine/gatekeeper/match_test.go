package gatekeeper

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
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
		if got := anyGlob([]string{c.pattern}, c.name); got != c.want {
			t.Errorf("%q matches %q: %t, want %t", c.pattern, c.name, got, c.want)
		}
	}
}

func TestMatch(t *testing.T) {
	pods := []applyTo{{Groups: []string{""}, Versions: []string{"v1"}, Kinds: []string{"Pod"}}}
	only := func(operations ...string) []applyTo {
		a := pods[0]
		a.Operations = operations
		return []applyTo{a}
	}
	front := labels.SelectorFromSet(labels.Set{"tier": "front"})
	pod := candidateOf("Pod", "shop", "web")
	node := candidateOf("Node", "", "n1")
	namespace := candidateOf("Namespace", "", "shop")
	for _, c := range []struct {
		says     string
		criteria criteria
		on       candidate
		want     string // the reason; empty where it matches
	}{
		{"no criteria match everything", criteria{}, node, ""},
		{"the type of applyTo", criteria{ApplyTo: pods}, pod, ""},
		{"another type", criteria{ApplyTo: pods}, node, "applyTo: wants v1/Pod, is v1/Node"},
		{"applyTo takes no wildcards", criteria{ApplyTo: []applyTo{{Groups: []string{"*"}, Versions: []string{"*"}, Kinds: []string{"*"}}}}, pod, "applyTo: wants */*/*, is v1/Pod"},
		{"an operation", criteria{ApplyTo: only("UPDATE")}, pod, ""},
		{"any operation", criteria{ApplyTo: only("*")}, pod, ""},
		{"another operation", criteria{ApplyTo: only("CREATE")}, pod, "applyTo.operations: wants CREATE, is UPDATE"},
		{"the operation of another entry does not count", criteria{ApplyTo: append(only("CREATE"), applyTo{
			Groups: []string{""}, Versions: []string{"v1"}, Kinds: []string{"Node"}, Operations: []string{"UPDATE"},
		})}, pod, "applyTo.operations: wants CREATE, is UPDATE"},
		{"kinds of any group", criteria{Kinds: []matchKinds{{APIGroups: []string{"*"}, Kinds: []string{"Pod"}}}}, pod, ""},
		{"empty lists of kinds", criteria{Kinds: []matchKinds{{}}}, pod, ""},
		{"other kinds", criteria{Kinds: []matchKinds{{APIGroups: []string{"apps"}, Kinds: []string{"*"}}}}, pod, "kinds: wants apps/*, is Pod"},
		{"in a namespace", criteria{Scope: scopeNamespaced}, pod, ""},
		{"a Namespace is of the cluster", criteria{Scope: scopeNamespaced}, namespace, "scope: wants Namespaced, is Cluster"},
		{"of the cluster", criteria{Scope: scopeCluster}, node, ""},
		{"not of the cluster", criteria{Scope: scopeCluster}, pod, "scope: wants Cluster, is Namespaced"},
		{"a scope that is none filters nothing", criteria{Scope: "Namespaced | Cluster"}, node, ""},
		{"the namespace", criteria{Namespaces: []string{"other", "sh*"}}, pod, ""},
		{"another namespace", criteria{Namespaces: []string{"other"}}, pod, "namespaces: wants other, is shop"},
		{"a Namespace by its name", criteria{Namespaces: []string{"shop"}}, namespace, ""},
		{"no namespace", criteria{Namespaces: []string{"*"}}, node, "namespaces: wants *, has none"},
		{"excluded", criteria{ExcludedNamespaces: []string{"sh*"}}, pod, "excludedNamespaces: wants none of sh*, is shop"},
		{"excluded wins", criteria{Namespaces: []string{"shop"}, ExcludedNamespaces: []string{"shop"}}, pod, "excludedNamespaces: wants none of shop, is shop"},
		{"what is in no namespace cannot be excluded", criteria{ExcludedNamespaces: []string{"*"}}, node, ""},
		{"labels", criteria{Labels: labels.SelectorFromSet(labels.Set{"app": "web"})}, pod, ""},
		{"other labels", criteria{Labels: front}, pod, "labelSelector: wants tier=front, is app=web"},
		{"labels of the Namespace", criteria{NamespaceLabels: front}, in(pod, "tier", "front"), ""},
		{"other labels of the Namespace", criteria{NamespaceLabels: front}, in(pod, "tier", "back"), "namespaceSelector: wants tier=front, is tier=back"},
		{"labels of no Namespace", criteria{NamespaceLabels: front}, node, "namespaceSelector: wants tier=front, has none"},
		{"a Namespace by its own labels", criteria{NamespaceLabels: labels.SelectorFromSet(labels.Set{"app": "web"})}, namespace, ""},
		{"a name", criteria{Name: "w*"}, pod, ""},
		{"another name", criteria{Name: "x*"}, pod, "name: wants x*, is web"},
		{"generated objects are nowhere", criteria{Source: sourceGenerated}, pod, "source: wants Generated, is Original"},
		{"original objects are everywhere", criteria{Source: "Original"}, pod, ""},
		{"the first criterion is reported", criteria{ApplyTo: pods, Scope: scopeCluster, Name: "x"}, pod, "scope: wants Cluster, is Namespaced"},
	} {
		t.Run(c.says, func(t *testing.T) {
			unmet, err := c.criteria.match(&c.on)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if unmet != nil {
				got = c.criteria.explain(unmet, &c.on).Error()
			}
			if got != c.want {
				t.Errorf("\n got %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestMatchWithoutTheNamespace(t *testing.T) {
	pod := candidateOf("Pod", "shop", "web")
	c := criteria{NamespaceLabels: labels.SelectorFromSet(labels.Set{"tier": "front"})}
	if _, err := c.match(&pod); !errors.Is(err, errNoNamespace) {
		t.Errorf("got %v", err)
	}
	c.NamespaceLabels = labels.SelectorFromSet(labels.Set{"kubernetes.io/metadata.name": "shop"})
	if unmet, err := c.match(&pod); err != nil || unmet != nil {
		t.Errorf("its name: %v, error %v", unmet, err)
	}
}

func candidateOf(kind, namespace, name string) candidate {
	return candidate{
		Key:       engine.ObjectKey{GroupKind: schema.GroupKind{Kind: kind}, Version: "v1", Namespace: namespace, Name: name},
		Object:    map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}},
		Operation: engine.OperationUpdate,
	}
}

func in(c candidate, key, value string) candidate {
	c.Namespace = &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"labels": map[string]any{key: value}}}}
	return c
}
