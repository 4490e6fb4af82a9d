package conformance

import (
	"bytes"
	_ "embed"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

//go:embed testdata/objects.yaml
var readerObjects []byte

// ReaderObjects are what a server under test must hold, in an order in which they can
// be created; it may hold others, whose names do not start with "contract-".
func ReaderObjects(t testing.TB) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, text := range bytes.Split(readerObjects, []byte("\n---\n")) {
		data, err := yaml.YAMLToJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(data); err != nil {
			t.Fatal(err)
		}
		out = append(out, u)
	}
	return out
}

// ReaderSubject is what is under test.
type ReaderSubject struct {
	engine.Reader
	Source func(engine.Scope) engine.Source
}

// TestReader checks reading, listing, schemas and streaming.
func TestReader(t *testing.T, s ReaderSubject) {
	t.Run("Get", s.testGet)
	t.Run("List", s.testList)
	t.Run("Schema", s.testSchema)
	t.Run("Source", s.testSource)
	t.Run("Target", s.testTarget)
	t.Run("Named", s.testNamedObjectThatIsNotThere)
}

func (s ReaderSubject) testGet(t *testing.T) {
	key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "contract-shop", Name: "settings"}
	u, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if mode, _, _ := unstructured.NestedString(u.Object, "data", "mode"); mode != "fast" || u.GetKind() != "ConfigMap" {
		t.Errorf("got %v", u.Object)
	}
	key.Name = "nobody"
	if _, err := s.Get(t.Context(), key); !apierrors.IsNotFound(err) {
		t.Errorf("an absent object: got error %v, want NotFound", err)
	}
}

func (s ReaderSubject) testList(t *testing.T) {
	for name, c := range map[string]struct {
		selection engine.Selection
		want      []string
	}{
		"one object":     {engine.Selection{Kind: "ConfigMap", Namespace: "contract-shop", Name: "spare"}, []string{"ConfigMap contract-shop/spare"}},
		"a version":      {engine.Selection{Version: "v1", Kind: "ConfigMap", Name: "spare"}, []string{"ConfigMap contract-shop/spare"}},
		"name wildcards": {engine.Selection{Kind: "ConfigMap", Namespace: "contract-*", Name: "s?are"}, []string{"ConfigMap contract-shop/spare"}},
		"labels": {
			engine.Selection{Kind: "ConfigMap", Namespace: "contract-*", Labels: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
			[]string{"ConfigMap contract-bank/settings", "ConfigMap contract-shop/settings"},
		},
		"labels of everything": {
			engine.Selection{Kind: "ConfigMap", Namespace: "contract-shop", Name: "spare", Labels: &metav1.LabelSelector{}},
			[]string{"ConfigMap contract-shop/spare"},
		},
		"kind wildcards": {
			engine.Selection{Group: "*", Kind: "*", Namespace: "contract-shop", Labels: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
			[]string{"ConfigMap contract-shop/settings", "apps/Deployment contract-shop/web"},
		},
		"cluster-scoped": {engine.Selection{Group: "scheduling.k8s.io", Kind: "PriorityClass", Name: "contract-*"}, []string{"scheduling.k8s.io/PriorityClass contract-high"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for u, err := range s.Reader.List(t.Context(), c.selection) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, engine.KeyOf(u).String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func (s ReaderSubject) testSchema(t *testing.T) {
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	known, err := s.Schema(t.Context(), deployment)
	if err != nil || !known.Known() {
		t.Fatalf("no schema of Deployments: %v", err)
	}
	for _, u := range ReaderObjects(t) {
		if u.GetKind() != "Deployment" {
			continue
		}
		if _, err := known.Types.ObjectToTyped(u); err != nil {
			t.Errorf("a Deployment does not fit its schema: %v", err)
		}
	}
	meta := known.Patch
	for _, field := range []string{"spec", "template", "spec"} {
		if meta, _, err = meta.LookupPatchMetadataForStruct(field); err != nil {
			t.Fatal(err)
		}
	}
	_, list, err := meta.LookupPatchMetadataForSlice("containers")
	if err != nil || list.GetPatchMergeKey() != "name" || !slices.Equal(list.GetPatchStrategies(), []string{"merge"}) {
		t.Errorf("containers merge by %q, %q: %v", list.GetPatchMergeKey(), list.GetPatchStrategies(), err)
	}
	unknown, err := s.Schema(t.Context(), schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Unheard"})
	if err != nil || unknown.Known() {
		t.Errorf("an unknown kind: schema %v, error %v", unknown, err)
	}
}

func (s ReaderSubject) testSource(t *testing.T) {
	configMaps, everything := engine.Selection{Kind: "ConfigMap"}, engine.Selection{Group: "*", Version: "*", Kind: "*"}
	all := engine.Scope{ClusterScoped: true}
	only := func(group, kind, name string) []engine.ObjectKey {
		return []engine.ObjectKey{{GroupKind: schema.GroupKind{Group: group, Kind: kind}, Name: name}}
	}
	for name, c := range map[string]struct {
		scope      engine.Scope
		selections []engine.Selection
		want       []string
	}{
		"each object comes once, in order": {
			all,
			[]engine.Selection{{Group: "apps", Kind: "Deployment"}, configMaps, configMaps, {Kind: "Config*", Name: "settings"}},
			[]string{"ConfigMap contract-bank/owned", "ConfigMap contract-bank/settings", "ConfigMap contract-shop/settings", "ConfigMap contract-shop/spare", "apps/Deployment contract-shop/web"},
		},
		"a selection narrows": {
			all,
			[]engine.Selection{{Kind: "ConfigMap", Namespace: "contract-b*", Labels: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}},
			[]string{"ConfigMap contract-bank/settings"},
		},
		"a wildcard leaves out leases and what a controller owns": {
			engine.Scope{Namespaces: []string{"contract-bank"}},
			[]engine.Selection{everything},
			[]string{"ConfigMap contract-bank/settings"},
		},
		"unless they are typed": {
			engine.Scope{Namespaces: []string{"contract-bank"}, Only: only("coordination.k8s.io", "Lease", "")},
			[]engine.Selection{everything},
			[]string{"coordination.k8s.io/Lease contract-bank/lock"},
		},
		"several namespaces": {
			engine.Scope{Namespaces: []string{"contract-bank", "contract-shop"}},
			[]engine.Selection{configMaps},
			[]string{"ConfigMap contract-bank/owned", "ConfigMap contract-bank/settings", "ConfigMap contract-shop/settings", "ConfigMap contract-shop/spare"},
		},
		"a typed name in several namespaces": {
			engine.Scope{Namespaces: []string{"contract-bank", "contract-shop"}, Only: only("", "ConfigMap", "spare")},
			[]engine.Selection{everything},
			[]string{"ConfigMap contract-shop/spare"},
		},
		"a typed name": {
			engine.Scope{Namespaces: []string{"contract-bank"}, Only: only("", "ConfigMap", "owned")},
			[]engine.Selection{everything},
			[]string{"ConfigMap contract-bank/owned"},
		},
		"a typed name in all namespaces": {
			engine.Scope{Only: only("", "ConfigMap", "settings")},
			[]engine.Selection{configMaps},
			[]string{"ConfigMap contract-bank/settings", "ConfigMap contract-shop/settings"},
		},
		"a typed kind that no policy matches":      {engine.Scope{Only: only("apps", "Deployment", "")}, []engine.Selection{configMaps}, nil},
		"a namespace leaves out cluster-scoped":    {engine.Scope{Namespaces: []string{"contract-shop"}}, []engine.Selection{{Kind: "Namespace"}, {Group: "apps", Kind: "*"}}, []string{"apps/Deployment contract-shop/web"}},
		"cluster-scoped kinds":                     {all, []engine.Selection{{Kind: "Namespace", Name: "contract-*"}}, []string{"Namespace contract-bank", "Namespace contract-shop"}},
		"a label selector":                         {engine.Scope{Labels: labels.SelectorFromSet(labels.Set{"app": "web"})}, []engine.Selection{configMaps}, []string{"ConfigMap contract-bank/settings", "ConfigMap contract-shop/settings"}},
		"a field selector":                         {engine.Scope{Fields: fields.OneTermEqualSelector("metadata.name", "spare")}, []engine.Selection{configMaps}, []string{"ConfigMap contract-shop/spare"}},
		"a subresource selects no object":          {all, []engine.Selection{{Group: "apps", Kind: "Deployment", Subresource: "scale"}}, nil},
		"a kind that is not served is no obstacle": {all, []engine.Selection{{Group: "example.com", Kind: "Unheard"}, {Kind: "ConfigMap", Name: "spare"}}, []string{"ConfigMap contract-shop/spare"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, keys(t, s.Source(c.scope), c.selections)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// keys streams a source and names the objects that are the contract's.
func keys(t *testing.T, src engine.Source, selections []engine.Selection) []string {
	t.Helper()
	var out []string
	for page, err := range src.Pages(t.Context(), selections) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Len() {
			target, err := page.Target(i)
			if err != nil {
				t.Fatal(err)
			}
			if name := target.Key.String(); strings.Contains(name, "contract-") && target.Key.Name != "kube-root-ca.crt" {
				out = append(out, name)
			}
		}
	}
	return out
}

func (s ReaderSubject) testTarget(t *testing.T) {
	for name, c := range map[string]struct {
		operation engine.Operation
		old       bool
	}{"CREATE has no old object": {engine.OperationCreate, false}, "UPDATE has one": {engine.OperationUpdate, true}, "auto has one": {engine.OperationAuto, true}} {
		t.Run(name, func(t *testing.T) {
			scope := engine.Scope{Namespaces: []string{"contract-shop"}, Request: engine.Request{Operation: c.operation}}
			target := first(t, s.Source(scope), engine.Selection{Group: "apps", Kind: "Deployment"})
			if (target.OldObject != nil) != c.old || target.Request.Operation != c.operation {
				t.Errorf("old object %v, operation %s", target.OldObject, target.Request.Operation)
			}
			if target.Namespace == nil || target.Namespace.GetLabels()["team"] != "shop" {
				t.Errorf("namespace is %v", target.Namespace)
			}
			if target.Mapping == nil || target.Mapping.Resource.Resource != "deployments" || target.Object.GetAPIVersion() != "apps/v1" {
				t.Errorf("mapping is %v, apiVersion %s", target.Mapping, target.Object.GetAPIVersion())
			}
			if replicas, _, _ := unstructured.NestedFieldNoCopy(target.Object.Object, "spec", "replicas"); replicas != int64(2) {
				t.Errorf("replicas are %T(%v)", replicas, replicas)
			}
		})
	}
}

func first(t *testing.T, src engine.Source, selection engine.Selection) engine.Target {
	t.Helper()
	for page, err := range src.Pages(t.Context(), []engine.Selection{selection}) {
		if err != nil {
			t.Fatal(err)
		}
		target, err := page.Target(0)
		if err != nil {
			t.Fatal(err)
		}
		return target
	}
	t.Fatal("the source is empty")
	return engine.Target{}
}

func (s ReaderSubject) testNamedObjectThatIsNotThere(t *testing.T) {
	scope := engine.Scope{Namespaces: []string{"contract-shop"}, Only: []engine.ObjectKey{
		{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Name: "nobody"}, {GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Name: "spare"},
	}}
	objects, unreadable := 0, 0
	for page, err := range s.Source(scope).Pages(t.Context(), []engine.Selection{{Kind: "ConfigMap"}}) {
		var partial *engine.UnreadableError
		switch {
		case errors.As(err, &partial) && apierrors.IsNotFound(err):
			unreadable++
		case err != nil:
			t.Fatal(err)
		default:
			objects += page.Len()
		}
	}
	if objects != 1 || unreadable != 1 {
		t.Errorf("%d objects and %d unreadable, want one each", objects, unreadable)
	}
}
