package human

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Workloads of the same name on several clusters are several workloads.
func TestRunningTellsClustersApart(t *testing.T) {
	pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{
			"name": "db-0", "namespace": "shop",
			"ownerReferences": []any{map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "u", "controller": true}},
		},
	}}
	var r running
	for _, cluster := range []string{"prod-us", "prod-eu", "prod-us"} {
		r.add(&engine.Change{
			Subject: engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "Pod"}, Namespace: "shop", Name: "db-0", Cluster: cluster},
			Before:  pod, After: pod,
			Fields:  []engine.FieldChange{{Path: fieldpath.MakePathOrDie("spec", "priority"), Kind: engine.Added, To: int64(1)}},
			Impacts: []engine.Impact{{Code: engine.ImpactImmutable}},
		})
	}
	if diff := cmp.Diff([]string{"StatefulSet shop/db on prod-eu", "StatefulSet shop/db on prod-us"}, r.workloads); diff != "" {
		t.Error(diff)
	}
}
