package conformance

import (
	_ "embed"
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

//go:embed testdata/objects.yaml
var readerObjects string

// ReaderObjects are what a server under test must hold, in an order in which they can
// be created; it may hold others, whose names do not start with "contract-".
func ReaderObjects(t testing.TB) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, text := range strings.Split(readerObjects, "\n---\n") {
		out = append(out, ReadObject(t, []byte(text)))
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

// web are the labels of some objects.
//
//nolint:gochecknoglobals // which nobody changes
var web = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}

func (s ReaderSubject) testList(t *testing.T) {
	const shop, spare, both = "contract-shop", "ConfigMap shop/spare", "ConfigMap bank/settings, ConfigMap shop/settings"
	for name, c := range map[string]struct {
		selection engine.Selection
		want      string
	}{
		"one object":           {engine.Selection{Kind: "ConfigMap", Namespace: shop, Name: "spare"}, spare},
		"a version":            {engine.Selection{Version: "v1", Kind: "ConfigMap", Name: "spare"}, spare},
		"name wildcards":       {engine.Selection{Kind: "ConfigMap", Namespace: "contract-*", Name: "s?are"}, spare},
		"labels":               {engine.Selection{Kind: "ConfigMap", Namespace: "contract-*", Labels: web}, both},
		"labels of everything": {engine.Selection{Kind: "ConfigMap", Namespace: shop, Name: "spare", Labels: &metav1.LabelSelector{}}, spare},
		"kind wildcards":       {engine.Selection{Group: "*", Kind: "*", Namespace: shop, Labels: web}, "ConfigMap shop/settings, apps/Deployment shop/web"},
		"cluster-scoped":       {engine.Selection{Group: "scheduling.k8s.io", Kind: "PriorityClass", Name: "contract-*"}, "scheduling.k8s.io/PriorityClass high"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []engine.ObjectKey
			for u, err := range s.Reader.List(t.Context(), c.selection) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, engine.KeyOf(u))
			}
			if names := contracted(got); names != c.want {
				t.Errorf("got %s, want %s", names, c.want)
			}
		})
	}
}

// contracted names the objects that are the contract's, without the prefix.
func contracted(keys []engine.ObjectKey) string {
	var out []string
	for _, key := range keys {
		if name := key.String(); strings.Contains(name, "contract-") && key.Name != "kube-root-ca.crt" {
			out = append(out, strings.Replace(name, "contract-", "", 1))
		}
	}
	return strings.Join(out, ", ")
}

func (s ReaderSubject) testSchema(t *testing.T) {
	known, err := s.Schema(t.Context(), schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
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
	strategies, key, isList := known.Fields.ListPatch([]string{"spec", "template", "spec", "containers"})
	if !isList || key != "name" || !slices.Equal(strategies, []string{"merge"}) {
		t.Errorf("containers merge by %q, %q", key, strategies)
	}
	unknown, err := s.Schema(t.Context(), schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Unheard"})
	if err != nil || unknown.Known() {
		t.Errorf("an unknown kind: schema %v, error %v", unknown, err)
	}
}

func (s ReaderSubject) testSource(t *testing.T) {
	one := func(s engine.Selection) []engine.Selection { return []engine.Selection{s} }
	configMaps, everything, deployments := one(engine.Selection{Kind: "ConfigMap"}), one(engine.Selection{Group: "*", Version: "*", Kind: "*"}), engine.Selection{Group: "apps", Kind: "Deployment"}
	all, bank, both := engine.Scope{ClusterScoped: true}, []string{"contract-bank"}, []string{"contract-bank", "contract-shop"}
	only := func(group, kind, name string) []engine.ObjectKey {
		return []engine.ObjectKey{{GroupKind: schema.GroupKind{Group: group, Kind: kind}, Name: name}}
	}
	const spare, settings = "ConfigMap shop/spare", "ConfigMap bank/settings, ConfigMap shop/settings"
	for name, c := range map[string]struct {
		scope      engine.Scope
		selections []engine.Selection
		want       string
	}{
		"each object comes once, in order":                        {all, append([]engine.Selection{deployments, {Kind: "Config*", Name: "settings"}}, configMaps...), "ConfigMap bank/owned, " + settings + ", " + spare + ", apps/Deployment shop/web"},
		"a selection narrows":                                     {all, one(engine.Selection{Kind: "ConfigMap", Namespace: "contract-b*", Labels: web}), "ConfigMap bank/settings"},
		"a wildcard leaves out leases and what a controller owns": {engine.Scope{Namespaces: bank}, everything, "ConfigMap bank/settings"},
		"unless they are typed":                                   {engine.Scope{Namespaces: bank, Only: only("coordination.k8s.io", "Lease", "")}, everything, "coordination.k8s.io/Lease bank/lock"},
		"several namespaces":                                      {engine.Scope{Namespaces: both}, configMaps, "ConfigMap bank/owned, " + settings + ", " + spare},
		"a typed name in several namespaces":                      {engine.Scope{Namespaces: both, Only: only("", "ConfigMap", "spare")}, everything, spare},
		"a typed name":                                            {engine.Scope{Namespaces: bank, Only: only("", "ConfigMap", "owned")}, everything, "ConfigMap bank/owned"},
		"a typed name in all namespaces":                          {engine.Scope{Only: only("", "ConfigMap", "settings")}, configMaps, settings},
		"a typed kind that no policy matches":                     {engine.Scope{Only: only("apps", "Deployment", "")}, configMaps, ""},
		"a namespace leaves out cluster-scoped":                   {engine.Scope{Namespaces: both}, []engine.Selection{{Kind: "Namespace"}, deployments}, "apps/Deployment shop/web"},
		"cluster-scoped kinds":                                    {all, one(engine.Selection{Kind: "Namespace", Name: "contract-*"}), "Namespace bank, Namespace shop"},
		"a label selector":                                        {engine.Scope{Labels: labels.SelectorFromSet(web.MatchLabels)}, configMaps, settings},
		"a field selector":                                        {engine.Scope{Fields: fields.OneTermEqualSelector("metadata.name", "spare")}, configMaps, spare},
		"a subresource selects its object":                        {all, one(engine.Selection{Group: "apps", Kind: "Deployment", Subresource: "scale"}), "apps/Deployment shop/web"},
		"a kind that is not served is no obstacle":                {all, []engine.Selection{{Group: "example.com", Kind: "Unheard"}, {Kind: "ConfigMap", Name: "spare"}}, spare},
	} {
		t.Run(name, func(t *testing.T) {
			var got []engine.ObjectKey
			targets, unread := stream(t, s.Source(c.scope), c.selections)
			for _, target := range targets {
				got = append(got, target.Key)
			}
			if names := contracted(got); names != c.want || unread > 0 {
				t.Errorf("got %s, want %s", names, c.want)
			}
		})
	}
}

// stream returns the targets of a source, and how many named objects it does not have.
func stream(t *testing.T, src engine.Source, selections []engine.Selection) (out []engine.Target, absent int) {
	t.Helper()
	for page, err := range src.Pages(t.Context(), selections) {
		var partial *engine.UnreadableError
		switch {
		case errors.As(err, &partial) && apierrors.IsNotFound(err):
			absent++
			continue
		case err != nil:
			t.Fatal(err)
		}
		for i := range page.Len() {
			target, err := page.Target(i)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, target)
		}
	}
	return out, absent
}

func (s ReaderSubject) testTarget(t *testing.T) {
	for operation, old := range map[engine.Operation]bool{engine.OperationCreate: false, engine.OperationUpdate: true, engine.OperationAuto: true} {
		scope := engine.Scope{Namespaces: []string{"contract-shop"}, Request: engine.Request{Operation: operation}}
		targets, _ := stream(t, s.Source(scope), []engine.Selection{{Group: "apps", Kind: "Deployment"}})
		if len(targets) != 1 {
			t.Fatalf("%d Deployments", len(targets))
		}
		target := targets[0]
		if (target.OldObject != nil) != old || target.Request.Operation != operation {
			t.Errorf("%s: old object %v, operation %s", operation, target.OldObject, target.Request.Operation)
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
	}
}

func (s ReaderSubject) testNamedObjectThatIsNotThere(t *testing.T) {
	configMap := schema.GroupKind{Kind: "ConfigMap"}
	scope := engine.Scope{Namespaces: []string{"contract-shop"}, Only: []engine.ObjectKey{{GroupKind: configMap, Name: "nobody"}, {GroupKind: configMap, Name: "spare"}}}
	if objects, absent := stream(t, s.Source(scope), []engine.Selection{{Kind: "ConfigMap"}}); len(objects) != 1 || absent != 1 {
		t.Errorf("%d objects and %d absent, want one each", len(objects), absent)
	}
}
