package mutatingpolicy_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/mutatingpolicy"
)

// Each case of testdata/compile holds policies, perhaps objects, an origin and an
// --only or --skip, and says what compiling gives: what is reported, the rules in
// order, what is worth listing, and what becomes of the objects, with reasons.
func TestCompile(t *testing.T) {
	conformance.Golden(t, "testdata/compile", *update, func(t *testing.T, sections map[string]string) string {
		return conformance.Compiled(t, mutatingpolicy.New(project), sections)
	})
}

func TestAccepts(t *testing.T) {
	d := mutatingpolicy.New(nil)
	for gk, want := range map[schema.GroupKind]engine.Role{
		{Group: "policies.kyverno.io", Kind: "MutatingPolicy"}:           engine.Policy,
		{Group: "policies.kyverno.io", Kind: "NamespacedMutatingPolicy"}: engine.Policy,
		{Group: "policies.kyverno.io", Kind: "PolicyException"}:          engine.Input,
		{Group: "kyverno.io", Kind: "GlobalContextEntry"}:                engine.Input,
		{Group: "policies.kyverno.io", Kind: "ValidatingPolicy"}:         engine.Foreign,
		{Group: "kyverno.io", Kind: "PolicyException"}:                   engine.Foreign,
		{Group: "example.com", Kind: "MutatingPolicy"}:                   engine.Foreign,
	} {
		if got := d.Accepts(gk); got != want {
			t.Errorf("%s: role %d, want %d", gk, got, want)
		}
	}
}
