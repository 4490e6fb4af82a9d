package kyverno

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
)

// Each case of testdata/compile holds policies, perhaps objects and an --only or
// --skip, and says what compiling gives: the rules in order, what is worth
// listing, what is reported, and why rules do not match the objects.
func TestCompile(t *testing.T) {
	conformance.Golden(t, "testdata/compile", *update, func(t *testing.T, sections map[string]string) string {
		return conformance.Compiled(t, New(), sections)
	})
}

func TestAccepts(t *testing.T) {
	for _, tc := range []struct {
		group, kind string
		want        engine.Role
	}{
		{"kyverno.io", "ClusterPolicy", engine.Policy},
		{"kyverno.io", "Policy", engine.Policy},
		{"kyverno.io", "PolicyException", engine.Input},
		{"kyverno.io", "GlobalContextEntry", engine.Input},
		{"kyverno.io", "CleanupPolicy", engine.Foreign},
		{"policies.kyverno.io", "MutatingPolicy", engine.Foreign},
		{"", "ConfigMap", engine.Foreign},
	} {
		if got := New().Accepts(schema.GroupKind{Group: tc.group, Kind: tc.kind}); got != tc.want {
			t.Errorf("%s of %s: %d, want %d", tc.kind, tc.group, got, tc.want)
		}
	}
}
