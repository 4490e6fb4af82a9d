package human

import (
	"fmt"
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

// The memory of a run does not grow with its workloads.
func TestRunningIsBounded(t *testing.T) {
	var r running
	for i := range 20 * maxWorkloads {
		r.add(refusedPod("prod", fmt.Sprintf("db-%05d", 20*maxWorkloads-i)))
	}
	if len(r.workloads) > maxWorkloads || cap(r.workloads) > 2*maxWorkloads {
		t.Errorf("%d workloads are kept, in %d places", len(r.workloads), cap(r.workloads))
	}
	want := "No change to a Pod or Job can be made (20000 objects): the server refuses it once the object is there. " +
		"The templates of StatefulSet shop/db-00001 on prod, StatefulSet shop/db-00002 on prod, StatefulSet shop/db-00003 on prod and more than 997 others would take it."
	if diff := cmp.Diff(want, r.sentence(evaluation.Summary{}, false)); diff != "" {
		t.Error(diff)
	}
}

// Workloads of the same name on several clusters are several workloads.
func TestRunningTellsClustersApart(t *testing.T) {
	var r running
	for _, cluster := range []string{"prod-us", "prod-eu", "prod-us"} {
		r.add(refusedPod(cluster, "db"))
	}
	if diff := cmp.Diff([]string{"StatefulSet shop/db on prod-eu", "StatefulSet shop/db on prod-us"}, r.workloads); diff != "" {
		t.Error(diff)
	}
}
