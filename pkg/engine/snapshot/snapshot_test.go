package snapshot_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

func TestSnapshotKeepsTheContract(t *testing.T) {
	s := load(t, conformance.ReaderObjects(t), snapshot.Options{})
	conformance.TestReader(t, conformance.ReaderSubject{Reader: s, Source: s.Source})
}

func TestNamespaceIsDefaultedByScope(t *testing.T) {
	given := object("v1", "ConfigMap", "", "a")
	s := load(t, []*unstructured.Unstructured{
		given, object("v1", "Node", "", "n"),
		object("example.com/v1", "Guess", "elsewhere", "a"), object("example.com/v1", "Guess", "", "b"),
		object("example.com/v1", "Cluster", "", "c"),
	}, snapshot.Options{Namespace: "shop"})
	want := map[string]string{"ConfigMap": "shop", "Node": "", "Cluster": "", "Guess": "shop"}
	for u, err := range s.List(t.Context(), engine.Selection{Group: "*", Kind: "*"}) {
		if err != nil {
			t.Fatal(err)
		}
		if u.GetName() == "a" && u.GetKind() == "Guess" {
			continue
		}
		if u.GetNamespace() != want[u.GetKind()] {
			t.Errorf("%s is in namespace %q", u.GetKind(), u.GetNamespace())
		}
	}
	if given.GetNamespace() != "" {
		t.Error("the object that was handed in was modified")
	}
}

func TestObjectsWithoutTypeOrNameAreRefused(t *testing.T) {
	for _, u := range []*unstructured.Unstructured{object("", "ConfigMap", "", "a"), object("v1", "", "", "a"), object("v1", "ConfigMap", "", ""), {}} {
		if _, err := snapshot.Load(engine.Documents(u), snapshot.Options{}); err == nil {
			t.Errorf("%v: no error", u.Object)
		}
	}
}

func TestFieldSelectorsOfOtherFieldsNeedACluster(t *testing.T) {
	s := load(t, nil, snapshot.Options{})
	scope := engine.Scope{Fields: fields.OneTermEqualSelector("status.phase", "Running")}
	for _, err := range s.Source(scope).Pages(t.Context(), []engine.Selection{{Kind: "Pod"}}) {
		if err == nil || !strings.Contains(err.Error(), `"status.phase" needs a cluster`) {
			t.Errorf("got error %v", err)
		}
	}
}

func load(t *testing.T, objects []*unstructured.Unstructured, o snapshot.Options) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Load(engine.Documents(objects...), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	metadata := map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}}
}

func TestResourcesAreKnownByTheirShortNames(t *testing.T) {
	definition := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets.example.com")
	definition.Object["spec"] = map[string]any{
		"group": "example.com", "scope": "Namespaced",
		"names":    map[string]any{"kind": "Widget", "plural": "widgets", "shortNames": []any{"wi", "po"}, "categories": []any{"all", "things"}},
		"versions": []any{map[string]any{"name": "v1"}},
	}
	mapper := load(t, []*unstructured.Unstructured{definition}, snapshot.Options{}).Mapper()
	for typed, want := range map[schema.GroupVersionResource]string{
		{Resource: "deploy"}:                     "Deployment",
		{Resource: "deploy", Group: "apps"}:      "Deployment",
		{Resource: "wi"}:                         "Widget",
		{Resource: "po"}:                         "Pod",
		{Resource: "po", Group: "example.com"}:   "Widget",
		{Resource: "deployments"}:                "Deployment",
		{Resource: "deploy", Group: "other.org"}: "",
	} {
		got, err := mapper.KindsFor(typed)
		if want == "" && meta.IsNoMatchError(err) {
			continue
		}
		if err != nil || got[0].Kind != want {
			t.Errorf("%v: got %v, error %v, want %q", typed, got, err, want)
		}
	}
	widgets := schema.GroupResource{Group: "example.com", Resource: "widgets"}
	for category, want := range map[string]schema.GroupResource{"all": {Resource: "pods"}, "things": widgets, "none": {}} {
		got, ok := mapper.(restmapper.CategoryExpander).Expand(category)
		if ok != (category != "none") || ok && (got[0] != want || got[len(got)-1] != widgets) {
			t.Errorf("category %s: got %v, %t", category, got, ok)
		}
	}
}
