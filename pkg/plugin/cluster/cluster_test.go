package cluster_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

const configMaps = "GET /api/v1/configmaps?"

func TestListReadsPageByPage(t *testing.T) {
	for name, c := range map[string]struct {
		answers map[string]answer
		want    string
	}{
		"to the end": {map[string]answer{
			configMaps + "limit=2":              page("two", "a", "b"),
			configMaps + "continue=two&limit=2": page("", "c"),
		}, "a b c"},
		"from the token of an expired listing": {map[string]answer{
			configMaps + "limit=2":                page("two", "a", "b"),
			configMaps + "continue=two&limit=2":   status(http.StatusGone, "Expired", "newer"),
			configMaps + "continue=newer&limit=2": page("", "c", "d"),
		}, "a b c d"},
	} {
		t.Run(name, func(t *testing.T) {
			client := newServer(t, c.answers).client(t, cluster.Options{ChunkSize: 2})
			var listed []string
			for u, err := range client.List(t.Context(), engine.Selection{Kind: "ConfigMap"}) {
				if err != nil {
					t.Fatal(err)
				}
				if u.GetKind() != "ConfigMap" || u.GetAPIVersion() != "v1" {
					t.Errorf("%s is a %s %s", u.GetName(), u.GetAPIVersion(), u.GetKind())
				}
				listed = append(listed, u.GetName())
			}
			streamed, err := stream(t, client.Source(engine.Scope{}, cluster.SourceOptions{}), engine.Selection{Kind: "ConfigMap"})
			if err != nil {
				t.Fatal(err)
			}
			for _, got := range []string{strings.Join(listed, " "), strings.Join(streamed, " ")} {
				if got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
			}
		})
	}
}

// A listing whose snapshot has expired begins again in pages where the server has no token to go on with, or
// one that expires as well; objects that came before are skipped.
func TestListBeginsAgainInPages(t *testing.T) {
	for name, token := range map[string]string{"no token": "", "a token that has expired, too": "newer"} {
		t.Run(name, func(t *testing.T) {
			expired := 0
			server := listServer(t, func(r *http.Request) answer {
				switch at := r.URL.Query().Get("continue"); {
				case r.URL.Query().Get("limit") != "2":
					t.Errorf("%s is not for a page", r.URL)
				case at == "":
					return page("two", "a", "b")
				case expired < 2 || at == "newer":
					expired++
					return status(http.StatusGone, "Expired", token)
				}
				return page("", "c")
			})
			client := server.client(t, cluster.Options{ChunkSize: 2})
			names, err := stream(t, client.Source(engine.Scope{}, cluster.SourceOptions{}), engine.Selection{Kind: "ConfigMap"})
			if got := strings.Join(names, " "); got != "a b c" || err != nil {
				t.Errorf("got %s, %v", got, err)
			}
			if expired != 2 {
				t.Errorf("%d requests have expired", expired)
			}
		})
	}
}

func stream(t *testing.T, src engine.Source, selections ...engine.Selection) (names []string, errs error) {
	t.Helper()
	for page, err := range src.Pages(t.Context(), selections) {
		if err != nil {
			errs = errors.Join(errs, err)
			continue
		}
		for i := range page.Len() {
			target, err := page.Target(i)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, target.Key.Name)
		}
	}
	return names, errs
}

func TestSourceForbiddenListing(t *testing.T) {
	client := newServer(t, map[string]answer{
		configMaps + "limit=500":        status(http.StatusForbidden, "Forbidden", ""),
		"GET /api/v1/secrets?limit=500": {body: `{"kind":"SecretList","apiVersion":"v1","items":[{"metadata":{"name":"token","namespace":"shop"}}]}`},
	}).client(t, cluster.Options{})
	names, err := stream(t, client.Source(engine.Scope{}, cluster.SourceOptions{}), engine.Selection{Kind: "ConfigMap"}, engine.Selection{Kind: "Secret"})
	var unreadable *engine.UnreadableError
	if !errors.As(err, &unreadable) || unreadable.What != "configmaps" || !apierrors.IsForbidden(unreadable) {
		t.Errorf("got error %v", err)
	}
	if !slices.Equal(names, []string{"token"}) {
		t.Errorf("the rest is %v", names)
	}
}

func TestSourceErrors(t *testing.T) {
	scope := engine.Scope{Only: []engine.ObjectKey{{GroupKind: schema.GroupKind{Kind: "Unheard"}}}}
	client := newServer(t, nil).client(t, cluster.Options{})
	_, err := stream(t, client.Source(scope, cluster.SourceOptions{}), engine.Selection{Kind: "ConfigMap"})
	if err == nil || !strings.Contains(err.Error(), `resource type "Unheard"`) {
		t.Errorf("an unknown type: got error %v", err)
	}
	for name, a := range map[string]answer{
		"refused credentials": status(http.StatusUnauthorized, "Unauthorized", ""), "nonsense": {body: `{"items":[{`},
	} {
		client := newServer(t, map[string]answer{configMaps + "limit=500": a}).client(t, cluster.Options{})
		names, err := stream(t, client.Source(engine.Scope{}, cluster.SourceOptions{}), engine.Selection{Kind: "ConfigMap"}, engine.Selection{Kind: "Secret"})
		var partial *engine.UnreadableError
		if err == nil || errors.As(err, &partial) || names != nil {
			t.Errorf("%s: got %v, error %v", name, names, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range client.Source(engine.Scope{}, cluster.SourceOptions{}).Pages(ctx, []engine.Selection{{Kind: "ConfigMap"}}) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled run: got error %v", err)
		}
	}
}

func TestSourceUnservedKind(t *testing.T) {
	client := newServer(t, map[string]answer{configMaps + "limit=500": page("", "a")}).client(t, cluster.Options{})
	var warnings []string
	source := client.Source(engine.Scope{}, cluster.SourceOptions{Warn: func(err error) { warnings = append(warnings, err.Error()) }})
	names, err := stream(t, source, engine.Selection{Group: "example.com", Kind: "Unheard"}, engine.Selection{Kind: "ConfigMap"})
	if err != nil || !slices.Equal(names, []string{"a"}) {
		t.Errorf("got %v, error %v", names, err)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "namespaces") {
		t.Errorf("warnings: %q", warnings)
	}
}

func key(namespace, name string) engine.ObjectKey {
	return engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: namespace, Name: name}
}

func TestGetChecksNames(t *testing.T) {
	server := newServer(t, nil)
	client := server.client(t, cluster.Options{})
	below := func(subresource string) engine.ObjectKey {
		k := key("shop", "a")
		k.Subresource = subresource
		return k
	}
	for _, k := range []engine.ObjectKey{
		key("shop", "a/status"), key("..", "a"), key("shop", ""), key("", "a"), key("shop", "%2e"),
		below("../b"), below("proxy"), below("exec"), below("token"),
	} {
		if _, err := client.Get(t.Context(), k); !apierrors.IsBadRequest(err) {
			t.Errorf("%s: got error %v", k, err)
		}
	}
	if _, err := client.Get(t.Context(), engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "Unheard"}, Name: "a"}); !meta.IsNoMatchError(err) {
		t.Errorf("an unknown kind: got error %v", err)
	}
	if sent := server.sent(); len(sent) > 0 {
		t.Errorf("sent %q", sent)
	}
}

func TestDiscoveryReadsOnce(t *testing.T) {
	server := newServer(t, nil)
	client := server.client(t, cluster.Options{})
	unknown := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "Unheard"}, Name: "a"}
	for range 2 {
		if _, err := client.Get(t.Context(), unknown); !meta.IsNoMatchError(err) {
			t.Fatalf("got error %v", err)
		}
	}
	before := server.discoveries.Load()
	if _, err := client.Get(t.Context(), unknown); !meta.IsNoMatchError(err) || server.discoveries.Load() != before {
		t.Errorf("%d more discovery requests, error %v", server.discoveries.Load()-before, err)
	}
}

func TestPatchParameters(t *testing.T) {
	server := newServer(t, map[string]answer{
		"PATCH /api/v1/namespaces/shop/configmaps/a?dryRun=All&fieldManager=m&fieldValidation=Strict&force=true": {
			body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`,
		},
	})
	patch := cluster.Patch{Type: types.ApplyPatchType, Body: []byte(`{}`), FieldManager: "m", Force: true, DryRun: true}
	if _, err := server.client(t, cluster.Options{ReadOnly: true}).Patch(t.Context(), key("shop", "a"), patch); err != nil {
		t.Errorf("%v; sent %q", err, server.sent())
	}
	patch.DryRun = false
	var refused *cluster.RefusedError
	if _, err := server.client(t, cluster.Options{ReadOnly: true}).Patch(t.Context(), key("shop", "a"), patch); !errors.As(err, &refused) {
		t.Errorf("a write through a read-only client: got error %v", err)
	}
}

func TestCreateSendsToTheNamespace(t *testing.T) {
	server := newServer(t, map[string]answer{"POST /api/v1/namespaces/shop/configmaps": {code: http.StatusCreated, body: `{}`}})
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"generateName": "a.", "namespace": "shop"},
	}}
	if err := server.client(t, cluster.Options{}).Create(t.Context(), object); err != nil {
		t.Errorf("%v; sent %q", err, server.sent())
	}
	var refused *cluster.RefusedError
	if err := server.client(t, cluster.Options{ReadOnly: true}).Create(t.Context(), object); !errors.As(err, &refused) {
		t.Errorf("a write through a read-only client: got error %v", err)
	}
	object.SetNamespace("../../../apis")
	if err := server.client(t, cluster.Options{}).Create(t.Context(), object); !apierrors.IsBadRequest(err) {
		t.Errorf("a namespace that leads elsewhere: got error %v", err)
	}
	if len(server.sent()) != 1 {
		t.Errorf("sent %q, want one request", server.sent())
	}
}

func TestPolicyDocumentsPreferredVersion(t *testing.T) {
	client := newServer(t, map[string]answer{
		"GET /apis/kyverno.io/v1/clusterpolicies?limit=500": {body: `{"items":[{"metadata":{"name":"p"}}]}`},
	}).client(t, cluster.Options{})
	documents, unread := client.PolicyDocuments(t.Context(), func(gk schema.GroupKind) engine.Role {
		if gk.Kind == "Namespace" || gk.Group == "kyverno.io" {
			return engine.Policy
		}
		return engine.Foreign
	})
	if len(unread) > 0 || len(documents) != 1 {
		t.Fatalf("%d documents, errors %v", len(documents), unread)
	}
	want := map[string]any{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": map[string]any{"name": "p"}}
	if diff := cmp.Diff(want, documents[0].Object().Object); diff != "" || documents[0].Origin != cluster.Origin {
		t.Error(documents[0].Origin, diff)
	}
}

func TestRawRefusesWrites(t *testing.T) {
	const review = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
	for _, c := range []struct {
		method, target string
		sent           string // empty when it is refused
	}{
		{"GET", "/api/v1/namespaces/shop/configmaps?labelSelector=a%3Db", "GET /api/v1/namespaces/shop/configmaps?labelSelector=a%3Db"},
		{"GET", "api/v1/../v1/pods", "GET /api/v1/pods"},
		{"POST", review, "POST " + review},
		{"POST", "/api/v1/namespaces/shop/pods?dryRun=All", ""},
		{"DELETE", "/api/v1/namespaces/shop/pods/web", ""},
		{"GET", "/api/v1/namespaces/shop/pods/web/log", ""},
		{"GET", "/api/v1/namespaces/shop/pods/web/exec?command=rm", ""},
		{"GET", "/api/v1/namespaces/shop/pods/%77eb/%65xec", ""},
		{"POST", "/api/v1/namespaces/shop/serviceaccounts/a/token", ""},
		{"GET", "https://example.com/api/v1/pods", ""},
		{"GET", "//example.com/api/v1/pods", ""},
	} {
		server := newServer(t, map[string]answer{c.sent: {body: `{"ok":true}`}})
		body, err := server.client(t, cluster.Options{}).Raw(t.Context(), c.method, c.target, []byte(`{}`))
		var refused *cluster.RefusedError
		if c.sent == "" && (!errors.As(err, &refused) || len(server.sent()) > 0) {
			t.Errorf("%s %s: sent %q, error %v", c.method, c.target, server.sent(), err)
		}
		if c.sent != "" && (err != nil || string(body) != `{"ok":true}`) {
			t.Errorf("%s %s: sent %q, error %v", c.method, c.target, server.sent(), err)
		}
	}
}
