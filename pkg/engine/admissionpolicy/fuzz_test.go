package admissionpolicy_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/admissionpolicy"
)

func FuzzCompile(f *testing.F) {
	kind := schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingAdmissionPolicy"}
	conformance.FuzzCompile(f, admissionpolicy.New(), kind, "testdata", "testdata/compile")
}
