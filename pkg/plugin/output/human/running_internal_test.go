package human

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
)

// refusedPod is a change to a Pod of a StatefulSet that the server refuses.
func refusedPod(cluster, workload string) *engine.Change {
	pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{
			"name": workload + "-0", "namespace": "shop",
			"ownerReferences": []any{map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": workload, "uid": "u", "controller": true}},
		},
	}}
	return &engine.Change{
		Subject: engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "Pod"}, Namespace: "shop", Name: pod.GetName(), Cluster: cluster},
		Before:  pod, After: pod,
		Fields:  []engine.FieldChange{{Path: fieldpath.MakePathOrDie("spec", "priority"), Kind: engine.Added, To: int64(1)}},
		Impacts: []engine.Impact{{Code: engine.ImpactImmutable}},
	}
}

// Workloads of the same name on several clusters are several workloads.
func TestRunningTellsClustersApart(t *testing.T) {
	var r running
	for _, cluster := range []string{"prod-us", "prod-eu", "prod-us"} {
		r.add(refusedPod(cluster, "db"))
	}
	want := "No change to a Pod or Job can be made (3 objects): the server refuses it once the object is there. " +
		"The templates of StatefulSet shop/db on prod-eu, StatefulSet shop/db on prod-us would take it."
	if diff := cmp.Diff(want, r.sentence(evaluation.Summary{}, false)); diff != "" {
		t.Error(diff)
	}
}
