package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

// newClient connects as a user, or as the administrator where user is empty.
func newClient(t *testing.T, user string, o cluster.Options) *cluster.Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*server.as(user, "default"), path); err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig, flags.CacheDir = &path, &cache
	client, err := cluster.New(flags, o)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestClusterKeepsTheContract(t *testing.T) {
	createContractObjects(t)
	for _, chunk := range []int64{1, 500} {
		t.Run(fmt.Sprintf("%d at a time", chunk), func(t *testing.T) {
			client := newClient(t, "", cluster.Options{ReadOnly: true, ChunkSize: chunk, QPS: 1000, Burst: 1000})
			conformance.TestReader(t, conformance.ReaderSubject{Reader: client, Source: func(scope engine.Scope) engine.Source {
				return client.Source(scope, cluster.SourceOptions{})
			}})
		})
	}
}

func createContractObjects(t *testing.T) {
	t.Helper()
	objects := conformance.ReaderObjects(t)
	known, err := snapshot.Load(engine.Documents(objects...), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	admin, err := dynamic.NewForConfig(restConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range objects {
		gvk := u.GroupVersionKind()
		mapping, err := known.Mapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			t.Fatal(err)
		}
		var at dynamic.ResourceInterface = admin.Resource(mapping.Resource)
		if u.GetNamespace() != "" {
			at = admin.Resource(mapping.Resource).Namespace(u.GetNamespace())
		}
		if _, err := at.Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if u.GetNamespace() != "" {
			continue // goes with its Namespace
		}
		t.Cleanup(func() {
			if gvk.Kind == "Namespace" {
				err = deleteNamespace(context.Background(), admin, u.GetName())
			} else {
				err = at.Delete(context.Background(), u.GetName(), metav1.DeleteOptions{})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestReadOnlyClientAsksForDryRunsOnly(t *testing.T) {
	namespace := newNamespace(t)
	client := newClient(t, "", cluster.Options{ReadOnly: true})
	key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "Namespace"}, Name: namespace}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	patch := cluster.Patch{Type: types.MergePatchType, Body: body, FieldManager: "test", DryRun: true}
	answer, err := client.Patch(t.Context(), key, patch)
	if err != nil || answer.GetLabels()["a"] != "b" {
		t.Fatalf("dry run: %v, %v", answer, err)
	}
	patch.DryRun = false
	var refused *cluster.RefusedError
	if _, err := client.Patch(t.Context(), key, patch); !errors.As(err, &refused) {
		t.Errorf("a write: got error %v", err)
	}
	if live, err := client.Get(t.Context(), key); err != nil || live.GetLabels()["a"] != "" {
		t.Errorf("the object was written: %v, %v", live.GetLabels(), err)
	}
}

func TestForbiddenListingIsUnreadable(t *testing.T) {
	client := newClient(t, "viewer", cluster.Options{})
	warnings := 0
	source := client.Source(engine.Scope{Namespaces: []string{"default"}}, cluster.SourceOptions{Warn: func(error) { warnings++ }})
	for page, err := range source.Pages(t.Context(), []engine.Selection{{Kind: "Secret"}}) {
		var unreadable *engine.UnreadableError
		if !errors.As(err, &unreadable) || !apierrors.IsForbidden(err) || unreadable.What != "secrets in namespace default" {
			t.Errorf("page %v, error %v", page, err)
		}
	}
}

// TestSnapshotKnowsScopes holds what the snapshot knows of kinds
// against what a server says.
func TestSnapshotKnowsScopes(t *testing.T) {
	known, err := snapshot.Load(nil, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mapper := newClient(t, "", cluster.Options{}).Mapper()
	for _, gk := range []schema.GroupKind{
		{Kind: "Pod"},
		{Kind: "Node"},
		{Kind: "Namespace"},
		{Group: "apps", Kind: "Deployment"},
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"},
		{Group: "rbac.authorization.k8s.io", Kind: "Role"},
		{Group: "networking.k8s.io", Kind: "IngressClass"},
		{Group: "networking.k8s.io", Kind: "NetworkPolicy"},
		{Group: "storage.k8s.io", Kind: "CSIStorageCapacity"},
		{Group: "storage.k8s.io", Kind: "StorageClass"},
		{Group: "scheduling.k8s.io", Kind: "PriorityClass"},
		{Group: "policy", Kind: "PodDisruptionBudget"},
		{Group: "resource.k8s.io", Kind: "ResourceClaim"},
		{Group: "resource.k8s.io", Kind: "DeviceClass"},
		{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
		{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"},
		{Group: "node.k8s.io", Kind: "RuntimeClass"},
	} {
		want, err := mapper.RESTMapping(gk)
		if meta.IsNoMatchError(err) {
			continue // this server does not have it
		}
		got, ourErr := known.Mapper().RESTMapping(gk)
		if err != nil || ourErr != nil {
			t.Errorf("%s: %v, %v", gk, err, ourErr)
		} else if got.Resource != want.Resource || got.Scope.Name() != want.Scope.Name() {
			t.Errorf("%s: got %v %s, want %v %s", gk, got.Resource, got.Scope.Name(), want.Resource, want.Scope.Name())
		}
	}
}

// TestSnapshotKnowsShortNames holds what the snapshot knows of short names and of the category "all"
// against what a server says.
func TestSnapshotKnowsShortNames(t *testing.T) {
	definition := &unstructured.Unstructured{} // no part of client-go's types, so known only where there is one
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	definition.SetName("widgets.example.com")
	known, err := snapshot.Load(engine.Documents(definition), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	disco, err := discovery.NewDiscoveryClientForConfig(restConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := disco.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	tried, all := 0, map[schema.GroupResource]bool{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		if gv.Group != "" && gv.Group != "apps" && gv.Group != "autoscaling" && gv.Group != "batch" && gv.Group != "policy" && !strings.HasSuffix(gv.Group, ".k8s.io") {
			continue // of a CustomResourceDefinition
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Categories, "all") {
				all[gv.WithResource(r.Name).GroupResource()] = true
			}
			for _, name := range r.ShortNames {
				tried++
				got, err := known.Mapper().KindsFor(schema.GroupVersionResource{Resource: name})
				if err != nil || got[0].Kind != r.Kind {
					t.Errorf("%s of %s: got %s, error %v", name, r.Kind, got, err)
				}
			}
		}
	}
	if tried < 20 {
		t.Errorf("the server returned only %d short names", tried)
	}
	category, _ := known.Mapper().(restmapper.CategoryExpander).Expand("all")
	got := map[schema.GroupResource]bool{}
	for _, r := range category {
		got[r] = true
	}
	if diff := cmp.Diff(all, got); diff != "" {
		t.Errorf("category all: -server +snapshot\n%s", diff)
	}
}

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
