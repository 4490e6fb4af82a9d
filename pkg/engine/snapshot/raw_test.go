package snapshot_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

func rawSnapshot(t *testing.T) *snapshot.Snapshot {
	t.Helper()
	labelled := object("v1", "ConfigMap", "shop", "b")
	labelled.SetLabels(map[string]string{"app": "web"})
	return load(t, []*unstructured.Unstructured{
		object("v1", "ConfigMap", "shop", "a"), labelled, object("v1", "ConfigMap", "other", "c"),
		object("v1", "Node", "", "n1"), object("example.com/v1beta1", "Widget", "shop", "w"),
		object("apps/v1", "StatefulSet", "shop", "db"), object("v1", "Pod", "data", "p"),
	}, snapshot.Options{})
}

func TestRawAnswersAsAServer(t *testing.T) {
	s := rawSnapshot(t)
	for _, c := range []struct{ path, want string }{
		{"/api/v1/namespaces/shop/configmaps/a", "ConfigMap a"},
		{"/api/v1/namespaces/shop/configmaps/a/status", "ConfigMap a"},
		{"/api/v1/nodes/n1", "Node n1"},
		{"/apis/apps/v1/namespaces/shop/statefulsets/db/scale", "Scale db"},
		{"/api/v1/namespaces/data/pods/p/resize", "Pod p"},
		{"/api/v1/namespaces/data/pods/p/ephemeralcontainers", "Pod p"},
		{"/apis/example.com/v1beta1/namespaces/shop/widgets/w", "Widget w"},
		{"/api/v1/configmaps", "ConfigMapList c a b"},
		{"/api/v1/namespaces/shop/configmaps?limit=1", "ConfigMapList a b"},
		{"/api/v1/namespaces/empty/configmaps", "ConfigMapList"},
		{"/api/v1/namespaces/shop/pods", "PodList"},
		{"/api/v1/configmaps?labelSelector=app%3Dweb", "ConfigMapList b"},
		{"/api/v1/configmaps?labelSelector=app!=web", "ConfigMapList c a"},
		{"/api/v1/configmaps?fieldSelector=metadata.name%3Da", "ConfigMapList a"},
		{"/api/v1/configmaps?fieldSelector=metadata.namespace%3Dother", "ConfigMapList c"},
		{"/apis/example.com/v1beta1/widgets", "WidgetList w"},
	} {
		content, err := s.Raw(t.Context(), "GET", c.path, nil)
		if err != nil {
			t.Errorf("%s: %v", c.path, err)
			continue
		}
		if got := summary(t, content); got != c.want {
			t.Errorf("%s: got %q, want %q", c.path, got, c.want)
		}
	}
}

// summary is the kind and the names of an answer.
func summary(t *testing.T, content []byte) string {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(content, &u.Object); err != nil {
		t.Fatal(err)
	}
	out := []string{u.GetKind()}
	if name := u.GetName(); name != "" {
		out = append(out, name)
	}
	items, _, _ := unstructured.NestedSlice(u.Object, "items")
	for _, item := range items {
		out = append(out, (&unstructured.Unstructured{Object: item.(map[string]any)}).GetName())
	}
	return strings.Join(out, " ")
}

func TestRawElementsOfBuiltinKindsDoNotRepeatTheirKind(t *testing.T) {
	s := rawSnapshot(t)
	for path, want := range map[string]any{"/api/v1/nodes": nil, "/apis/example.com/v1beta1/widgets": "Widget"} {
		content, err := s.Raw(t.Context(), "GET", path, nil)
		if err != nil {
			t.Fatal(err)
		}
		var list struct{ Items []map[string]any }
		if err := json.Unmarshal(content, &list); err != nil || len(list.Items) != 1 {
			t.Fatalf("%s: %s, %v", path, content, err)
		}
		if got := list.Items[0]["kind"]; got != want {
			t.Errorf("%s: kind %v, want %v", path, got, want)
		}
	}
}

func TestRawSaysWhatIsNotThere(t *testing.T) {
	s := rawSnapshot(t)
	for _, path := range []string{
		"/api/v1/namespaces/shop/configmaps/absent", "/api/v1/gadgets", "/apis/example.com/v2/widgets",
		"/apis/none.example.com", "/apis/none.example.com/v1", "/api/v1/namespaces/shop/nodes",
	} {
		if _, err := s.Raw(t.Context(), "GET", path, nil); !apierrors.IsNotFound(err) {
			t.Errorf("%s: error %v, want one of NotFound", path, err)
		}
	}
}

func TestRawSaysWhatOnlyAClusterKnows(t *testing.T) {
	s := rawSnapshot(t)
	for _, c := range []struct{ method, path, want string }{
		{"GET", "/version", "manifests do not say this about the server"},
		{"GET", "/api/v1/namespaces/shop/configmaps/a/approval", "no approval"},
		{"GET", "/api/v1/pods?fieldSelector=status.phase%3DRunning", "status.phase"},
		{"GET", "/api/v1/pods?unheard=of", "unheard"},
		{"POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", "can only be read"},
	} {
		_, err := s.Raw(t.Context(), c.method, c.path, nil)
		var unanswered *engine.UnansweredError
		if !errors.As(err, &unanswered) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: error %v, want an UnansweredError about %q", c.method, c.path, err, c.want)
		}
	}
}

func TestRawRefusesBrokenSelectors(t *testing.T) {
	s := rawSnapshot(t)
	for _, query := range []string{"labelSelector=((", "fieldSelector=metadata.name"} {
		if _, err := s.Raw(t.Context(), "GET", "/api/v1/pods?"+query, nil); !apierrors.IsBadRequest(err) {
			t.Errorf("%s: error %v, want one of BadRequest", query, err)
		}
	}
}

func TestRawTellsTheKinds(t *testing.T) {
	s := rawSnapshot(t)
	var core struct{ Versions []string }
	get(t, s, "/api", &core)
	if diff := cmp.Diff([]string{"v1"}, core.Versions); diff != "" {
		t.Errorf("/api (-want +got):\n%s", diff)
	}
	var groups struct{ Groups []struct{ Name string } }
	get(t, s, "/apis", &groups)
	names := map[string]bool{}
	for _, g := range groups.Groups {
		names[g.Name] = true
	}
	for name, want := range map[string]bool{"": false, "apps": true, "example.com": true, "batch": true, "extensions": false} {
		if names[name] != want {
			t.Errorf("/apis: group %q is there: %t, want %t", name, names[name], want)
		}
	}
	var apps struct{ Versions []struct{ Version string } }
	get(t, s, "/apis/apps", &apps)
	if len(apps.Versions) != 1 || apps.Versions[0].Version != "v1" {
		t.Errorf("/apis/apps: %v", apps)
	}
	var resources struct {
		Resources []struct {
			Name, SingularName, Kind string
			Namespaced               bool
		}
	}
	get(t, s, "/apis/example.com/v1beta1", &resources)
	if len(resources.Resources) != 1 || resources.Resources[0].Name != "widgets" || !resources.Resources[0].Namespaced {
		t.Errorf("/apis/example.com/v1beta1: %v", resources)
	}
	get(t, s, "/api/v1", &resources)
	if len(resources.Resources) < 10 {
		t.Errorf("/api/v1: only %d resources", len(resources.Resources))
	}
}

func get(t *testing.T, s *snapshot.Snapshot, path string, into any) {
	t.Helper()
	content, err := s.Raw(t.Context(), "GET", path, nil)
	if err == nil {
		err = json.Unmarshal(content, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
