package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Those of a percentage are among those of a larger one, whichever objects there are beside them, and
// another seed chooses others.
func TestScopeChoosesAPercentageOfObjects(t *testing.T) {
	const all = 5000
	chosen := func(percent int, seed string) map[string]bool {
		out := map[string]bool{}
		for i := range all {
			k := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "shop", Name: fmt.Sprint(i), UID: "by name alone"}
			if (&engine.Scope{Percent: percent, Seed: seed}).InPercent(k) {
				out[k.Name] = true
			}
		}
		return out
	}
	before := map[string]bool{}
	for _, percent := range []int{1, 10, 20, 50, 99} {
		now := chosen(percent, "")
		if want := all * percent / 100; len(now) < want*8/10-20 || len(now) > want*12/10+20 {
			t.Errorf("%d %% of %d objects are %d", percent, all, len(now))
		}
		for name := range before {
			if !now[name] {
				t.Errorf("%s is not among %d %%", name, percent)
			}
		}
		before = now
	}
	if n := len(chosen(100, "")); n != all {
		t.Errorf("100 %% are %d", n)
	}
	other, same := chosen(10, "other"), 0
	for name := range chosen(10, "") {
		if other[name] {
			same++
		}
	}
	if same == len(other) || same > len(other)/2 {
		t.Errorf("another seed chooses %d of %d again", same, len(other))
	}
}

// The hash is a promise: a shard that is retried, by another version too, has the same objects.
func TestShardOfANamespaceStaysTheSame(t *testing.T) {
	for name, want := range map[string]int{"": 5, "default": 14, "kube-system": 14, "shop": 9, "\u00e9": 1} { // computed by another program
		for i := range 16 {
			if got := (engine.Shard{Index: i, Of: 16}).Has(name, "any"); name != "" && got != (i == want) {
				t.Errorf("%q is in shard %d/16: %t", name, i, got)
			}
			if got := (engine.Shard{Index: i, Of: 16}).Has("", name); got != (i == want) {
				t.Errorf("the cluster-scoped object %q is in shard %d/16: %t", name, i, got)
			}
		}
	}
}

func TestShardText(t *testing.T) {
	for _, text := range []string{"0/1", "0/4", "3/4", "99999/100000"} {
		var s engine.Shard
		if err := s.UnmarshalText([]byte(text)); err != nil || s.String() != text {
			t.Errorf("%q is %q, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "/", "1", "4/4", "-1/4", "0/0", "1/", "/1", "0/4/4", "a/b", "0/100001", "+0/4", "0x0/4", "$(JOB_COMPLETION_INDEX)/4", "0/99999999999999999999"} {
		s := engine.Shard{Index: 1, Of: 2}
		err := s.UnmarshalText([]byte(text))
		if err == nil || s != (engine.Shard{Index: 1, Of: 2}) {
			t.Errorf("%q is %q, %v", text, s, err)
		}
	}
	if s := (engine.Shard{}); s.String() != "" || !s.Whole() || !s.Has("shop", "web") {
		t.Errorf("the zero value is %q", s)
	}
}

// What objects are wanted is tested by the contract of package conformance; here it
// is about what a server may be asked, which must never be too little.
func TestKindFilterLabelsAndNames(t *testing.T) {
	web := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	front, err := labels.Parse("tier=front")
	if err != nil {
		t.Fatal(err)
	}
	type hints struct{ namespace, name, labels string }
	for name, c := range map[string]struct {
		selections []engine.Selection
		scope      engine.Scope
		want       hints
	}{
		"everything":             {[]engine.Selection{{Kind: "ConfigMap"}}, engine.Scope{}, hints{}},
		"what one policy wants":  {[]engine.Selection{{Kind: "ConfigMap", Namespace: "shop", Name: "a", Labels: web}}, engine.Scope{}, hints{"shop", "a", "app=web"}},
		"what two agree on":      {[]engine.Selection{{Kind: "ConfigMap", Namespace: "shop", Name: "a", Labels: web}, {Kind: "*", Group: "*", Namespace: "shop", Name: "b"}}, engine.Scope{}, hints{"shop", "", ""}},
		"no wildcards":           {[]engine.Selection{{Kind: "ConfigMap", Namespace: "sh*", Name: "?"}}, engine.Scope{}, hints{}},
		"what the user wants":    {[]engine.Selection{{Kind: "ConfigMap", Namespace: "sh*", Labels: web}}, engine.Scope{Namespaces: []string{"shop"}, Labels: front}, hints{"shop", "", "app=web,tier=front"}},
		"of what the user wants": {[]engine.Selection{{Kind: "ConfigMap", Namespace: "sh*"}, {Kind: "ConfigMap", Namespace: "bank"}}, engine.Scope{Namespaces: []string{"bank", "shed", "shop", "zoo"}}, hints{"bank,shed,shop", "", ""}},
		"not what others select": {[]engine.Selection{{Kind: "ConfigMap"}, {Kind: "Secret", Namespace: "bank"}}, engine.Scope{}, hints{}},
	} {
		t.Run(name, func(t *testing.T) {
			k, ok := filterOf(t, c.scope, configMaps(), c.selections...)
			if !ok {
				t.Fatal("ConfigMaps are not wanted")
			}
			if got := (hints{strings.Join(k.Namespaces(), ","), k.Name(), k.Labels()}); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func filterOf(t *testing.T, scope engine.Scope, m *meta.RESTMapping, selections ...engine.Selection) (*engine.KindFilter, bool) {
	t.Helper()
	joined, err := engine.NewObjectFilter(selections, scope)
	if err != nil {
		t.Fatal(err)
	}
	return joined.ForKind(m)
}

func configMaps() *meta.RESTMapping {
	v1 := schema.GroupVersion{Version: "v1"}
	return &meta.RESTMapping{GroupVersionKind: v1.WithKind("ConfigMap"), Resource: v1.WithResource("configmaps"), Scope: meta.RESTScopeNamespace}
}

func TestObjectFilterByResource(t *testing.T) {
	owned := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
		"namespace": "shop", "name": "a", "ownerReferences": []any{map[string]any{"kind": "X", "name": "x", "controller": true}},
	}}}
	for resource, want := range map[string]struct{ kind, owned bool }{
		"configmaps": {true, true}, "config*": {true, true}, "": {true, false}, "*": {true, false}, "secrets": {false, false},
	} {
		k, ok := filterOf(t, engine.Scope{}, configMaps(), engine.Selection{Group: "*", Kind: "*", Resource: resource})
		if ok != want.kind || (ok && k.Matches(owned) != want.owned) {
			t.Errorf("resource %q: wanted = %t, want %+v", resource, ok, want)
		}
	}
}

// Where the user keeps to a namespace, what policies want elsewhere asks for nothing
// there, and does not stand in the way of what they want in it.
func TestObjectFilterLeavesOutOtherNamespaces(t *testing.T) {
	elsewhere := engine.Selection{Kind: "ConfigMap", Namespace: "platform", Name: "settings"}
	here := engine.Selection{Kind: "ConfigMap", Namespace: "sh?p", Name: "a"}
	for name, c := range map[string]struct {
		selections []engine.Selection
		wanted     bool
	}{"elsewhere": {[]engine.Selection{elsewhere}, false}, "here too": {[]engine.Selection{elsewhere, here}, true}} {
		k, ok := filterOf(t, engine.Scope{Namespaces: []string{"shop"}}, configMaps(), c.selections...)
		if ok != c.wanted || (ok && k.Name() != "a") {
			t.Errorf("%s: wanted = %t, want %t: %+v", name, ok, c.wanted, k)
		}
	}
}

// As kubectl get: a namespace says nothing about objects that have none.
func TestObjectFilterOfClusterScopedKinds(t *testing.T) {
	for name, c := range map[string]struct {
		scope engine.Scope
		want  bool
	}{
		"all namespaces":        {engine.Scope{ClusterScoped: true}, true},
		"one namespace":         {engine.Scope{Namespaces: []string{"shop"}}, false},
		"one, and the kind":     {engine.Scope{Namespaces: []string{"shop"}, Only: namespaces("")}, true},
		"one, and the object":   {engine.Scope{Namespaces: []string{"shop"}, Only: namespaces("shop")}, true},
		"one, and another kind": {engine.Scope{Namespaces: []string{"shop"}, Only: []engine.ObjectKey{{GroupKind: schema.GroupKind{Kind: "Pod"}}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			v1 := schema.GroupVersion{Version: "v1"}
			namespaces := &meta.RESTMapping{GroupVersionKind: v1.WithKind("Namespace"), Resource: v1.WithResource("namespaces"), Scope: meta.RESTScopeRoot}
			k, ok := filterOf(t, c.scope, namespaces, engine.Selection{Kind: "Namespace"})
			if ok != c.want || ok && !k.Matches(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "shop"}}}) {
				t.Errorf("wanted = %t, want %t", ok, c.want)
			}
		})
	}
}

func namespaces(name string) []engine.ObjectKey {
	return []engine.ObjectKey{{GroupKind: schema.GroupKind{Kind: "Namespace"}, Name: name}}
}

// A scope reads no more than what it and a rule may both mean, and hands over nothing else.
func TestScopeOfPatterns(t *testing.T) {
	t.Parallel()
	scope := engine.Scope{Namespaces: []string{"bank", "team-*"}, Exclude: []engine.Selection{
		{Kind: "ConfigMap", Namespace: "*-a", Name: "web"}, {Group: "*", Kind: "*", Resource: "deployments.*", Name: "old-*"},
	}}
	for pattern, want := range map[string]string{
		"": "bank team-*", "*": "bank team-*", "bank": "bank", "team-a": "team-a", "shop": "", "b*": "bank b*", "team-a*": "team-a*",
	} {
		var got []string
		for _, s := range scope.Narrow(engine.Selection{Kind: "ConfigMap", Namespace: pattern}, nil) {
			got = append(got, s.Namespace)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %v, want %v", pattern, got, want)
		}
	}
	if narrowed := scope.Narrow(engine.Selection{Kind: "ConfigMap", Namespace: "team-a", Name: "web"}, nil); len(narrowed) > 0 {
		t.Errorf("an excluded object is read: %v", narrowed)
	}
	for name, want := range map[string]bool{
		"ConfigMap bank/web": true, "ConfigMap team-a/web": false, "ConfigMap team-b/web": true, "ConfigMap shop/web": false,
		"apps/Deployment bank/old-1": false, "apps/Deployment bank/web": true, "apps/StatefulSet bank/old-1": true,
	} {
		kind, at, _ := strings.Cut(name, " ")
		group, kind, grouped := strings.Cut(kind, "/")
		if !grouped {
			group, kind = "", group
		}
		namespace, object, _ := strings.Cut(at, "/")
		if got := scope.Includes(engine.ObjectKey{GroupKind: schema.GroupKind{Group: group, Kind: kind}, Namespace: namespace, Name: object}, nil); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
