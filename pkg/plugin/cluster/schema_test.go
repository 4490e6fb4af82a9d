package cluster_test

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

// A server that is out of order for a moment publishes its schemas afterwards.
func TestSchemaIsReadAgainAfterAnError(t *testing.T) {
	const document = "GET /openapi/v3/api/v1?timeout=32s"
	s := newServer(t, map[string]answer{
		"GET /openapi/v3?timeout=32s": {body: `{"paths":{"api/v1":{"serverRelativeURL":"/openapi/v3/api/v1"}}}`},
		document:                      {http.StatusServiceUnavailable, ""},
	})
	client := s.client(t, cluster.Options{})
	configMap := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	if _, err := client.Types(t.Context(), configMap, false); err == nil {
		t.Fatal("no error")
	}
	s.mu.Lock()
	s.answers[document] = answer{body: `{"openapi":"3.0.0","info":{"title":"","version":""},"paths":{},"components":{"schemas":{}}}`}
	s.mu.Unlock()
	if _, err := client.Types(t.Context(), configMap, false); err != nil {
		t.Error(err, s.sent())
	}
}

// A server without OpenAPI v3 is asked for it once, and not again for each kind or object.
func TestSchemaOfServerWithoutOpenAPI(t *testing.T) {
	s := newServer(t, map[string]answer{})
	client := s.client(t, cluster.Options{})
	for _, gvk := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"}, {Group: "apps", Version: "v1", Kind: "Deployment"}, {Version: "v1", Kind: "ConfigMap"},
	} {
		if found, err := client.Schema(t.Context(), gvk); err != nil || found.Known() {
			t.Errorf("%s: %v, %v", gvk, found, err)
		}
	}
	if sent := s.sent(); len(sent) != 1 {
		t.Error(sent)
	}
}

// The first schema that cannot be read is told, and only it: a cluster has many.
func TestUnreadableSchemaIsTold(t *testing.T) {
	s := newServer(t, map[string]answer{"GET /openapi/v3?timeout=32s": status(http.StatusForbidden, "Forbidden", "")})
	var out strings.Builder
	client := s.client(t, cluster.Options{Warnings: &out})
	for _, gvk := range []schema.GroupVersionKind{{Version: "v1", Kind: "ConfigMap"}, {Group: "apps", Version: "v1", Kind: "Deployment"}} {
		if _, err := client.Schema(t.Context(), gvk); err == nil {
			t.Errorf("%s: no error", gvk)
		}
	}
	if text := out.String(); !strings.HasPrefix(text, "warning: schema of v1 ConfigMap: ") || !strings.Contains(text, "without its schema, ") || strings.Count(text, "\n") != 1 {
		t.Errorf("told %q", text)
	}
}

// A schema is read below the path of the server in the kubeconfig.
func TestSchemaAddress(t *testing.T) {
	const path = "GET /clusters/c1/openapi/v3/api/v1?hash=1&timeout=32s"
	s := newServer(t, map[string]answer{
		"GET /clusters/c1/openapi/v3?timeout=32s": {body: `{"paths":{"api/v1":{"serverRelativeURL":"/openapi/v3/api/v1?hash=1"}}}`},
		path: {body: `{"openapi":"3.0.0","info":{"title":"","version":""},"paths":{},"components":{"schemas":{}}}`},
	})
	s.URL += "/clusters/c1"
	if _, err := s.client(t, cluster.Options{}).Schema(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}); err != nil || s.sent()[1] != path {
		t.Errorf("%v, %q", err, s.sent())
	}
}
