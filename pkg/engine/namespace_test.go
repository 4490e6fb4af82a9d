package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// A Namespace of a manifest has the label that an API server gives each one.
func TestNamespaceLabelsHaveTheName(t *testing.T) {
	for name, labels := range map[string]map[string]any{"without labels": nil, "with others": {"team": "shop"}} {
		t.Run(name, func(t *testing.T) {
			namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "shop"}}}
			want := map[string]string{"kubernetes.io/metadata.name": "shop"}
			if labels != nil {
				namespace.Object["metadata"].(map[string]any)["labels"] = labels
				want["team"] = "shop"
			}
			before := namespace.DeepCopy()
			target := engine.Target{Key: engine.ObjectKey{Namespace: "shop"}, Namespace: namespace}
			got, err := target.NamespaceLabels(t.Context(), &engine.World{}, []string{"kubernetes.io/metadata.name", "team"})
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("error %v, labels (-want +got):\n%s", err, diff)
			}
			if diff := cmp.Diff(before, namespace); diff != "" {
				t.Errorf("the Namespace itself is changed:\n%s", diff)
			}
		})
	}
}
