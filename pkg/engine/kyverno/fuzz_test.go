package kyverno

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
)

func FuzzCompile(f *testing.F) {
	conformance.FuzzCompile(f, New(), schema.GroupVersionKind{Group: "kyverno.io", Version: "v1", Kind: "ClusterPolicy"}, "testdata")
}
