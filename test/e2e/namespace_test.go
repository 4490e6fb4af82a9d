package e2e

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// newNamespace makes a namespace that is deleted when the test ends.
func newNamespace(t *testing.T) string {
	t.Helper()
	admin, err := dynamic.NewForConfig(restConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	name, err := createNamespace(t.Context(), admin, map[string]any{"generateName": "e2e-"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := deleteNamespace(context.Background(), admin, name); err != nil {
			t.Errorf("deleting namespace %s: %v", name, err)
		}
	})
	return name
}

// createNamespace also makes the default ServiceAccount, without which a
// cluster that has the admission plugin refuses Pods.
func createNamespace(ctx context.Context, c dynamic.Interface, metadata map[string]any) (string, error) {
	namespace, err := core(c, "namespaces").Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": metadata,
	}}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	account := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "default"},
	}}
	_, err = core(c, "serviceaccounts").Namespace(namespace.GetName()).Create(ctx, account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return "", err
	}
	return namespace.GetName(), nil
}

// deleteNamespace starts the deletion. The plane that the tests start has no
// controller that would complete it; the namespace then ends with the plane.
func deleteNamespace(ctx context.Context, c dynamic.Interface, name string) error {
	return core(c, "namespaces").Delete(ctx, name, metav1.DeleteOptions{})
}

func core(c dynamic.Interface, resource string) dynamic.NamespaceableResourceInterface {
	return c.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource})
}
