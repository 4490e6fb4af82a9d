package engine_test

import (
	"slices"
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
