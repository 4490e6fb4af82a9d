package engine_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

func TestParseAPIPath(t *testing.T) {
	for _, c := range []struct {
		text string
		want engine.APIPath
	}{
		{"/version", engine.APIPath{}},
		{"/api", engine.APIPath{}},
		{"api/v1/pods", engine.APIPath{Version: "v1", Resource: "pods"}},
		{"/apis/apps", engine.APIPath{Group: "apps"}},
		{"/api/v1", engine.APIPath{Version: "v1"}},
		{"/api/v1/nodes/n1", engine.APIPath{Version: "v1", Resource: "nodes", Name: "n1"}},
		{"/api/v1/namespaces", engine.APIPath{Version: "v1", Resource: "namespaces"}},
		{"/api/v1/namespaces/shop", engine.APIPath{Version: "v1", Resource: "namespaces", Name: "shop"}},
		{"/api/v1/namespaces/shop/status", engine.APIPath{Version: "v1", Resource: "namespaces", Name: "shop", Subresource: "status"}},
		{"/api/v1/namespaces/shop/pods", engine.APIPath{Version: "v1", Resource: "pods", Namespace: "shop"}},
		{"/apis/apps/v1/namespaces/shop/deployments/web/scale", engine.APIPath{Group: "apps", Version: "v1", Resource: "deployments", Namespace: "shop", Name: "web", Subresource: "scale"}},
		{"/api/v1/nodes/n1/proxy/metrics", engine.APIPath{Version: "v1", Resource: "nodes", Name: "n1", Subresource: "proxy"}},
		{"/api/v1/../v1//namespaces/shop/./pods/", engine.APIPath{Version: "v1", Resource: "pods", Namespace: "shop"}},
	} {
		got, err := engine.ParseAPIPath(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if diff := cmp.Diff(c.want, got, cmpopts.IgnoreUnexported(engine.APIPath{}), cmpopts.IgnoreFields(engine.APIPath{}, "Clean", "Query")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.text, diff)
		}
	}
}

func TestParseAPIPathRefusesOtherServers(t *testing.T) {
	for _, text := range []string{"https://example.com/api", "//example.com/api", "", "mailto:x", "/api/v1?a=%zz", "/api\x7f"} {
		if p, err := engine.ParseAPIPath(text); err == nil {
			t.Errorf("%q is read as %s", text, p)
		}
	}
}

func TestAPIPathRefusal(t *testing.T) {
	const pod = "/api/v1/namespaces/shop/pods/web"
	for _, c := range []struct{ method, path, want string }{
		{"GET", pod, ""},
		{"GET", "/api/v1/namespaces/shop/pods/exec", ""}, // a Pod of that name
		{"GET", "/apis/authorization.k8s.io/v1", ""},
		{"GET", "/api/v1/pods?watch=false", ""},
		{"GET", pod + "/exec?command=ls", "exec"},
		{"GET", pod + "%2Fexec", "exec"},
		{"GET", pod + "/attach", "attach"},
		{"GET", pod + "/portforward", "portforward"},
		{"GET", pod + "/proxy/admin", "proxy"},
		{"GET", "/api/v1/services/web/proxy", "proxy"},
		{"GET", "/api/v1/proxy/namespaces/shop/pods/web", "proxy"},
		{"GET", "/api/v1/namespaces/x/../shop/pods/web/exec", "exec"},
		{"GET", pod + "/log", "logs"},
		{"GET", "/logs/kube-apiserver.log", "logs"},
		{"GET", "/api/v1/pods?watch=true", "watch"},
		{"GET", "/api/v1/watch/pods", "watch"},
		{"POST", "/api/v1/namespaces/shop/serviceaccounts/default/token", "token"},
		{"POST", "/api/v1/namespaces/shop/pods", "write"},
		{"POST", "/api/v1/namespaces/shop/pods/web/eviction", "write"},
		{"POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", ""},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", ""},
		{"POST", "/apis/authorization.k8s.io/v1/namespaces/shop/localsubjectaccessreviews", ""},
		{"POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews/x", "write"},
		{"POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", ""},
		{"POST", "/apis/authentication.k8s.io/v1/tokenreviews", "without a token"},
		{"POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", "write"},
		{"DELETE", pod, "only GET"},
	} {
		p, err := engine.ParseAPIPath(c.path)
		if err != nil {
			t.Errorf("%s: %v", c.path, err)
			continue
		}
		if got := p.Refusal(c.method); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s %s: refusal %q, want %q in it", c.method, c.path, got, c.want)
		}
	}
}

func FuzzParseAPIPath(f *testing.F) {
	f.Add("/api/v1/namespaces/shop/pods/web?x=1")
	f.Add("/apis/apps/v1/../../x")
	f.Add("/api/v1/pods%3Fwatch=true")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := engine.ParseAPIPath(text)
		if err != nil {
			return
		}
		again, err := engine.ParseAPIPath(p.String())
		if err != nil {
			t.Fatalf("%q is a path and its canonical form is not: %v", text, err)
		}
		if again.Refusal("GET") != p.Refusal("GET") {
			t.Errorf("%q is judged %q, its canonical form %q is judged %q", text, p.Refusal("GET"), p.String(), again.Refusal("GET"))
		}
	})
}
