package kyverno

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

func targetOf(u *unstructured.Unstructured) engine.Target {
	return engine.Target{Key: engine.KeyOf(u), Object: u, OldObject: u}
}
