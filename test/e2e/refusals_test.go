package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/impact"
)

// TestRefusalsArePredicted asks the server to rehearse each change of the file that
// pkg/plugin/impact is tested with: what is predicted to be refused has to be, and
// everything else has to pass.
func TestRefusalsArePredicted(t *testing.T) {
	archive, err := txtar.ParseFile(filepath.Join("..", "..", "pkg", "plugin", "impact", "testdata", "refusals.txtar"))
	check(t, err)
	client := newClient(t, "", cluster.Options{QPS: 1000, Burst: 1000})
	admin, err := dynamic.NewForConfig(restConfig(t))
	check(t, err)
	for _, file := range archive.Files {
		t.Run(file.Name, func(t *testing.T) {
			object, patch := refusalCase(t, file.Data)
			live := createForRefusal(t, client, admin, object)
			after := patched(t, live.object, patch)
			typ := diff.TypeOf(t.Context(), client, object.GroupVersionKind())
			change := &engine.Change{Subject: engine.KeyOf(live.object), Before: live.object, After: after}
			change.Fields = append(change.Fields, diff.Compare(live.object.Object, after.Object, typ)...)
			predicted := len(impact.ImmutableRefusals(change)) > 0
			_, err := live.at.Patch(t.Context(), object.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			refused := apierrors.IsInvalid(err) || apierrors.IsForbidden(err)
			if err != nil && !refused {
				t.Fatal(err)
			}
			if want := strings.HasPrefix(file.Name, "refused/"); predicted != want || refused != want {
				t.Errorf("predicted to be refused: %t, refused: %t (%v)", predicted, refused, err)
			}
		})
	}
}

// refusalCase is an object and the JSON patch to make to it.
func refusalCase(t *testing.T, data []byte) (*unstructured.Unstructured, []byte) {
	t.Helper()
	text, change, ok := bytes.Cut(data, []byte("---\n"))
	if !ok {
		t.Fatal("no patch")
	}
	object := &unstructured.Unstructured{}
	check(t, yaml.Unmarshal(text, &object.Object))
	patch, err := yaml.YAMLToJSON(change)
	check(t, err)
	return object, patch
}

type refusalObject struct {
	object *unstructured.Unstructured
	at     dynamic.ResourceInterface
}

// createForRefusal creates an object, with its status where it has one, in a
// namespace of its own.
func createForRefusal(t *testing.T, client *cluster.Client, admin dynamic.Interface, object *unstructured.Unstructured) refusalObject {
	t.Helper()
	gvk := object.GroupVersionKind()
	mapping, err := client.Mapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	check(t, err)
	var at dynamic.ResourceInterface = admin.Resource(mapping.Resource)
	if mapping.Scope.Name() == "namespace" {
		object.SetNamespace(newNamespace(t))
		at = admin.Resource(mapping.Resource).Namespace(object.GetNamespace())
	}
	live, err := at.Create(t.Context(), object, metav1.CreateOptions{})
	check(t, err)
	if object.GetNamespace() == "" { // else it goes with its Namespace
		t.Cleanup(func() {
			ctx := context.Background()
			free := []byte(`{"metadata": {"finalizers": null}}`)
			_, err := at.Patch(ctx, object.GetName(), types.MergePatchType, free, metav1.PatchOptions{})
			if err := errors.Join(err, at.Delete(ctx, object.GetName(), metav1.DeleteOptions{})); err != nil {
				t.Error(err)
			}
		})
	}
	if status, ok := object.Object["status"]; ok {
		body, err := json.Marshal(map[string]any{"status": status})
		check(t, err)
		live, err = at.Patch(t.Context(), object.GetName(), types.MergePatchType, body, metav1.PatchOptions{}, "status")
		check(t, err)
	}
	return refusalObject{object: live, at: at}
}

func patched(t *testing.T, object *unstructured.Unstructured, patch []byte) *unstructured.Unstructured {
	t.Helper()
	operations, err := jsonpatch.DecodePatch(patch)
	check(t, err)
	text, err := object.MarshalJSON()
	check(t, err)
	text, err = operations.Apply(text)
	check(t, err)
	after := &unstructured.Unstructured{}
	check(t, after.UnmarshalJSON(text))
	return after
}
