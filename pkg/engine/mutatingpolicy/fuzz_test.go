package mutatingpolicy_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/mutatingpolicy"
)

func FuzzCompile(f *testing.F) {
	kind := schema.GroupVersionKind{Group: "policies.kyverno.io", Version: "v1", Kind: "MutatingPolicy"}
	conformance.FuzzCompile(f, mutatingpolicy.New(project), kind, "testdata", "testdata/autogen", "testdata/compile", "testdata/granted")
}
