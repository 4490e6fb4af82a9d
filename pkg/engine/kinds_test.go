package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

func TestNearest(t *testing.T) {
	names := []string{"image", "imagePullPolicy", "exec", "log", "status", "stdin"}
	for name, want := range map[string]string{
		"imagePullPolcy": "imagePullPolicy", "imagepullpolicy": "imagePullPolicy", "exce": "exec", "statuss": "status", "sttaus": "status",
		"imag": "image", "xy": "", "": "", "resize": "", "lo": "",
	} {
		if got := engine.Nearest(name, slices.Values(names)); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

// Among very many names, none is looked for: policies and schemas may have as many misspelt ones.
func TestNearestOfManyNames(t *testing.T) {
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("property%d", i)
	}
	if got := engine.Nearest("propetry7", slices.Values(names)); got != "property7" {
		t.Errorf("got %q of 1,000 names", got)
	}
	if got := engine.Nearest("propetry7", slices.Values(append(names, "status"))); got != "" {
		t.Errorf("got %q of 1,001 names", got)
	}
}

// The names of policies are as many as there are, but those that are misspelt are looked for a hundred times.
func TestPoliciesThatAreMeant(t *testing.T) {
	var names engine.PolicyNames
	for i := range 2000 {
		names.Add(fmt.Sprintf("policy%d", i))
	}
	for i := range 101 {
		err := names.Check(fmt.Sprintf("polciy%d", i))
		if said := strings.Contains(fmt.Sprint(err), fmt.Sprintf(`did you mean "policy%d"`, i)); said != (i < 100) {
			t.Fatalf("name %d: %v", i, err)
		}
	}
}

// A subresource that a kind does not have is as unknown as a kind.
func TestSubresourcesAreKnown(t *testing.T) {
	kind := func(group, kind, resource string, subresources ...string) engine.KnownKind {
		return engine.KnownKind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, Resource: resource, Subresources: subresources}
	}
	kinds := engine.Kinds{Whose: "there is no", Known: []engine.KnownKind{
		kind("", "Pod", "pods", "exec", "status"), kind("", "PodExecOptions", "pods", "exec", "status"), kind("", "ConfigMap", "configmaps"),
		kind("apps", "Deployment", "deployments", "scale", "status"), kind("example.com", "Thing", "things", engine.AnySubresource),
	}}
	for _, c := range []struct {
		name engine.KindName
		want string // empty for a name that is known
	}{
		{engine.KindName{Kind: "Pod", Subresource: "exec"}, ""},
		{engine.KindName{Kind: "Pod", Subresource: "ex*"}, ""},
		{engine.KindName{Kind: "*", Subresource: "scale"}, ""},
		{engine.KindName{Resource: "*", Subresource: "*"}, ""},
		{engine.KindName{Resource: "configmaps", Subresource: "*"}, ""},
		{engine.KindName{Resource: "things", Subresource: "anything"}, ""},
		{
			engine.KindName{Kind: "Pod", Subresource: "exce"},
			`there is no subresource "exce" of the kind "Pod", so this has no effect; did you mean "exec"?`,
		},
		{
			engine.KindName{Groups: []string{""}, Resource: "pods", Subresource: "scale"},
			`there is no subresource "scale" of the resource "pods" in the core group, so this has no effect`,
		},
		{
			engine.KindName{Kind: "Deploymnet", Subresource: "scale"},
			`there is no kind "Deploymnet", so this has no effect; did you mean "Deployment"?`,
		},
	} {
		got := ""
		if err := kinds.Check(c.name); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name.String(), got, c.want)
		}
	}
}

// What is not known is looked for among all kinds once, however many rules name it.
func TestUnknownKindsAreLookedForOnce(t *testing.T) {
	kinds := engine.Kinds{Whose: "there is no"}
	for i := range 1000 {
		kinds.Known = append(kinds.Known, engine.KnownKind{
			GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: fmt.Sprintf("Kind%03d", i)}, Resource: fmt.Sprintf("kind%03ds", i),
		})
	}
	name := engine.KindName{Kind: "Kidn012"}
	want := `there is no kind "Kidn012", so this has no effect; did you mean "Kind012"?`
	allocs := testing.AllocsPerRun(10, func() {
		if err := kinds.Check(name); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
	if allocs > 20 {
		t.Errorf("%.0f allocations to say that a kind is not known, which has been said before", allocs)
	}
}
