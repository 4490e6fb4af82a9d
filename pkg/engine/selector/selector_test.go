package selector_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

func TestParseKind(t *testing.T) {
	for text, want := range map[string]selector.Kind{
		"Pod":                      {Group: "*", Version: "*", Kind: "Pod"},
		"*":                        {Group: "*", Version: "*", Kind: "*"},
		"*/*":                      {Group: "*", Version: "*", Kind: "*", Subresource: "*"},
		"*/scale":                  {Group: "*", Version: "*", Kind: "*", Subresource: "scale"},
		"v1/Pod":                   {Group: "*", Version: "v1", Kind: "Pod"},
		"v1beta1/Ingress":          {Group: "*", Version: "v1beta1", Kind: "Ingress"},
		"Pod/exec":                 {Group: "*", Version: "*", Kind: "Pod", Subresource: "exec"},
		"Pod.status":               {Group: "*", Version: "*", Kind: "Pod", Subresource: "status"},
		"v1/Pod/exec":              {Group: "*", Version: "v1", Kind: "Pod", Subresource: "exec"},
		"apps/v1/Deployment":       {Group: "apps", Version: "v1", Kind: "Deployment"},
		"apps/*/Deploy*":           {Group: "apps", Version: "*", Kind: "Deploy*"},
		"apps/v1/Deployment/scale": {Group: "apps", Version: "v1", Kind: "Deployment", Subresource: "scale"},
		"apps/v1/Deployment.scale": {Group: "apps", Version: "v1", Kind: "Deployment", Subresource: "scale"},
	} {
		t.Run(text, func(t *testing.T) {
			got, err := selector.ParseKind(text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseKindRefuses(t *testing.T) {
	for _, text := range []string{"", "v1/", "/Pod", "a/b/c/d/e", "apps/v1/Deployment/scale.status"} {
		if kind, err := selector.ParseKind(text); err == nil {
			t.Errorf("%q was read as %+v", text, kind)
		}
	}
}

func FuzzParseKind(f *testing.F) {
	for _, seed := range []string{"Pod", "*/*", "apps/v1/Deployment.scale", "v1/", "a/b/c/d/e", "*.?", "v1beta1/*", "*/*/A"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		kind, err := selector.ParseKind(text)
		if err != nil || strings.Contains(text, ".") { // a dot splits the last part only
			return
		}
		again, err := selector.ParseKind(kind.String())
		if err == nil && again.String() != kind.String() {
			t.Errorf("%q reads as %+v, its text %q as %+v", text, kind, kind, again)
		}
	})
}

func TestLabels(t *testing.T) {
	for _, tc := range []struct {
		says     string
		selector metav1.LabelSelector
		labels   map[string]string
		want     bool
	}{
		{"nothing asked for is in everything", metav1.LabelSelector{}, nil, true},
		{"a plain pair", pairs("app", "web"), pairsOf("app", "web"), true},
		{"another value", pairs("app", "web"), pairsOf("app", "db"), false},
		{"a wildcard value", pairs("app", "w*"), pairsOf("app", "web"), true},
		{"a wildcard key", pairs("*/name", "web"), pairsOf("a.io/name", "web"), true},
		{"key and value must fit the same label", pairs("a*", "1"), map[string]string{"aa": "2", "b": "1"}, false},
		{"stars ask for some label", pairs("*", "*"), nil, false},
		{"a wildcard that nothing fits becomes zeros", pairs("a?", "x*"), pairsOf("a0", "x0"), true},
		{"expressions count beside wildcards", metav1.LabelSelector{
			MatchLabels:      map[string]string{"app": "*"},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpExists}},
		}, pairsOf("app", "web"), false},
	} {
		t.Run(tc.says, func(t *testing.T) {
			compiled, err := selector.NewWildcardLabels(&tc.selector)
			if err != nil {
				t.Fatal(err)
			}
			if got := compiled.Matches(tc.labels); got != tc.want {
				t.Errorf("%s on %v: %t, want %t", compiled, tc.labels, got, tc.want)
			}
		})
	}
}

func TestLabelsRefuse(t *testing.T) {
	bad := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Lt"}}}
	if _, err := selector.NewLabels(&bad); err == nil {
		t.Error("an operator that no server knows was accepted")
	}
	bad.MatchLabels = map[string]string{"*": "*"}
	if _, err := selector.NewWildcardLabels(&bad); err == nil {
		t.Error("an operator that no server knows was accepted beside wildcards")
	}
}

func TestPairs(t *testing.T) {
	set := map[string]string{"a/one": "1", "a/two": "2"}
	for _, tc := range []struct {
		says     string
		patterns map[string]string
		want     bool
	}{
		{"one pair may serve several patterns", map[string]string{"a/*": "1", "*/one": "?"}, true},
		{"each pattern needs a pair", map[string]string{"a/*": "1", "b/*": "*"}, false},
		{"a plain key needs its own value", map[string]string{"a/one": "2"}, false},
	} {
		t.Run(tc.says, func(t *testing.T) {
			if got := selector.Pairs(tc.patterns, set); got != tc.want {
				t.Errorf("%v on %v: %t, want %t", tc.patterns, set, got, tc.want)
			}
		})
	}
}

func pairs(key, value string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: pairsOf(key, value)}
}

func pairsOf(key, value string) map[string]string { return map[string]string{key: value} }

func TestResourceFilters(t *testing.T) {
	filters := selector.ParseResourceFilters(`[Event,*,*] [*/*,kube-system,*][Node/*,*,*]
		[Pod/binding,*,*][ConfigMap,shop,web-?] [Secret] [] [a/b/c/d/e,x]`)
	for _, c := range []struct {
		kind, namespace, name string
		want                  bool
	}{
		{"Event", "shop", "a", true},
		{"Pod", "kube-system", "a", true},
		{"Namespace", "", "kube-system", true},
		{"Namespace", "", "shop", false},
		{"Pod", "shop", "a", false},
		{"ConfigMap", "shop", "web-1", true},
		{"ConfigMap", "bank", "web-1", false},
		{"Secret", "bank", "any", true},
	} {
		gvk := schema.GroupVersionKind{Version: "v1", Kind: c.kind}
		if got := filters.Match(gvk, "", c.namespace, c.name); got != c.want {
			t.Errorf("%s %s/%s: got %t", c.kind, c.namespace, c.name, got)
		}
	}
}
