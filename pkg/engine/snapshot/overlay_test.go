package snapshot_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

// stale is an object as it was before somebody edited the file.
func stale(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := u.DeepCopy()
	out.SetLabels(map[string]string{"stale": "yes"})
	delete(out.Object, "data")
	delete(out.Object, "spec")
	return out
}

// Whatever part of the objects is in the cluster, and whatever part lies over it, new or in place of an
// older state, the answers are those of a cluster to which all have been applied.
func TestOverlayAnswersAsIfItWereApplied(t *testing.T) {
	all := conformance.ReaderObjects(t)
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			var live, files []*unstructured.Unstructured
			for _, u := range all {
				// Without its definition and an object of it a cluster does not have the kind.
				switch r.IntN(3) {
				case 0:
					live = append(live, u)
				case 1:
					files = append(files, u)
				default:
					live, files = append(live, stale(u)), append(files, u)
				}
			}
			applied, cluster := load(t, all, snapshot.Options{}), load(t, live, snapshot.Options{})
			top, err := snapshot.Load(nil, snapshot.Options{World: engine.Documents(files...), Cluster: cluster.Mapper()})
			if err != nil {
				t.Fatal(err)
			}
			overlay := top.Over(cluster)
			conformance.TestReader(t, conformance.ReaderSubject{Reader: overlay, Source: func(scope engine.Scope) engine.Source {
				return overlay.Source(applied.Source(scope))
			}})
			for _, path := range rawPaths(t, applied, all) {
				want, got := answer(t, applied, path), answer(t, overlay, path)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: -want +got:\n%s", path, diff)
				}
			}
		})
	}
}

// rawPaths are paths of objects and listings, with selectors and without.
func rawPaths(t *testing.T, s *snapshot.Snapshot, all []*unstructured.Unstructured) []string {
	t.Helper()
	var out []string
	for _, u := range all {
		mapping, err := s.Mapper().RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
		if err != nil {
			t.Fatal(err)
		}
		base := "/apis/" + mapping.Resource.Group + "/" + mapping.Resource.Version
		if mapping.Resource.Group == "" {
			base = "/api/" + mapping.Resource.Version
		}
		collection := base + "/" + mapping.Resource.Resource
		out = append(out, collection, collection+"?limit=1", collection+"?labelSelector=app%3Dweb", collection+"?labelSelector=stale")
		if ns := u.GetNamespace(); ns != "" {
			collection = base + "/namespaces/" + ns + "/" + mapping.Resource.Resource
			out = append(out, collection)
		}
		out = append(out, collection+"/"+u.GetName(), collection+"/nobody")
	}
	return out
}

// answer is the answer to a GET, or that there is none.
func answer(t *testing.T, s engine.RawReader, path string) any {
	t.Helper()
	body, err := s.Raw(t.Context(), "GET", path, nil)
	if apierrors.IsNotFound(err) {
		return "not found"
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var out any
	if err := json.Unmarshal(body, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// refusing is a cluster that refuses what it is asked.
type refusing struct {
	snapshot.Cluster
	err error
}

func (r refusing) Get(context.Context, engine.ObjectKey) (*unstructured.Unstructured, error) {
	return nil, r.err
}

func (r refusing) List(context.Context, engine.Selection) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) { yield(nil, r.err) }
}

func (r refusing) Raw(context.Context, string, string, []byte) ([]byte, error) { return nil, r.err }

// What the cluster does not have, the files have alone; what it refuses stays refused, since it is not known
// what else there is.
func TestOverlayOfWhatCannotBeRead(t *testing.T) {
	settings := object("v1", "ConfigMap", "shop", "settings")
	top := load(t, []*unstructured.Unstructured{settings}, snapshot.Options{})
	gr := schema.GroupResource{Resource: "configmaps"}
	configMaps := engine.Selection{Kind: "ConfigMap"}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"no such kind":     {&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "ConfigMap"}}, "settings"},
		"no such resource": {apierrors.NewNotFound(gr, ""), "settings"},
		"forbidden":        {apierrors.NewForbidden(gr, "", nil), "forbidden"},
		"unavailable":      {apierrors.NewServiceUnavailable("etcd"), "etcd"},
	} {
		t.Run(name, func(t *testing.T) {
			overlay := top.Over(refusing{err: c.err})
			for u, err := range overlay.List(t.Context(), configMaps) {
				if got := fmt.Sprint(err); err == nil && u.GetName() != c.want || err != nil && !strings.Contains(got, c.want) {
					t.Errorf("list: got %v, error %v, want %s", u, err, c.want)
				}
			}
			body, err := overlay.Raw(t.Context(), "GET", "/api/v1/configmaps", nil)
			if got := string(body) + fmt.Sprint(err); !strings.Contains(got, c.want) {
				t.Errorf("raw: got %s, want %s", got, c.want)
			}
			if u, err := overlay.Get(t.Context(), engine.KeyOf(settings)); err != nil || u.GetName() != "settings" {
				t.Errorf("get: got %v, error %v", u, err)
			}
		})
	}
	overlay := top.Over(refusing{err: apierrors.NewForbidden(gr, "", nil)})
	if _, err := overlay.Raw(t.Context(), "GET", "/api/v1/configmaps?continue=abc", nil); err == nil || !strings.Contains(err.Error(), "no parts") {
		t.Errorf("a part of a listing: got error %v", err)
	}
	if _, err := overlay.Raw(t.Context(), "POST", "/api/v1/configmaps", nil); !apierrors.IsForbidden(err) {
		t.Errorf("a POST: got error %v, want that of the cluster", err)
	}
}

// What a run may change is in the cluster; where only a file has it, the error names the file.
func TestOverlayExisting(t *testing.T) {
	inFile, inBoth := object("v1", "ConfigMap", "shop", "new"), object("v1", "ConfigMap", "shop", "both")
	inBoth.SetLabels(map[string]string{"from": "file"})
	live := object("v1", "ConfigMap", "shop", "both")
	documents := []engine.Document{engine.NewDocument(inFile, "new.yaml:1"), engine.NewDocument(inBoth, "both.yaml:1")}
	top, err := snapshot.Load(nil, snapshot.Options{World: documents})
	if err != nil {
		t.Fatal(err)
	}
	existing := top.Over(load(t, []*unstructured.Unstructured{live}, snapshot.Options{})).Existing()
	if _, err := existing.Get(t.Context(), engine.KeyOf(inFile)); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "only new.yaml:1 has it") {
		t.Errorf("what only a file has: got error %v", err)
	}
	u, err := existing.Get(t.Context(), engine.KeyOf(inBoth))
	if err != nil || len(u.GetLabels()) > 0 {
		t.Errorf("what both have: got %v, error %v", u, err)
	}
	var names []string
	for u, err := range existing.List(t.Context(), engine.Selection{Kind: "ConfigMap"}) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, u.GetName()+fmt.Sprint(len(u.GetLabels())))
	}
	if diff := cmp.Diff([]string{"both0"}, names); diff != "" {
		t.Error(diff)
	}
}

// A file may define kinds that the cluster does not have, and no others are added to those of the cluster.
func TestOverlayKinds(t *testing.T) {
	definition := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "tiers.example.com")
	definition.Object["spec"] = map[string]any{
		"group": "example.com", "scope": "Namespaced", "names": map[string]any{"kind": "Tier", "plural": "tiers"},
		"versions": []any{map[string]any{"name": "v1", "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}},
	}
	cluster := meta.NewDefaultRESTMapper(nil)
	cluster.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	top, err := snapshot.Load(nil, snapshot.Options{World: engine.Documents(definition), Cluster: cluster})
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[schema.GroupVersionKind]bool{
		{Group: "example.com", Version: "v1", Kind: "Tier"}: true,
		{Version: "v1", Kind: "ConfigMap"}:                  true,
		{Group: "apps", Version: "v1", Kind: "Deployment"}:  false,
	} {
		if _, err := top.Mapper().RESTMapping(kind.GroupKind(), kind.Version); (err == nil) != want {
			t.Errorf("%s: got error %v", kind, err)
		}
	}
	if err := top.CheckKind(engine.KindName{Kind: "Tier"}); err != nil {
		t.Error(err)
	}
	if err := top.CheckKind(engine.KindName{Kind: "Deployment"}); err == nil {
		t.Error("Deployment is known")
	}
	overlay := top.Over(load(t, nil, snapshot.Options{}))
	if s, err := overlay.Schema(t.Context(), schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Tier"}); err != nil || s.Types == nil {
		t.Errorf("got no schema, error %v", err)
	}
}
