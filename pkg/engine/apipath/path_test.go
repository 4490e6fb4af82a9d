package apipath_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/apipath"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		want apipath.Path
	}{
		{"/version", apipath.Path{}},
		{"/api", apipath.Path{}},
		{"api/v1/pods", apipath.Path{Version: "v1", Resource: "pods"}},
		{"/apis/apps", apipath.Path{Group: "apps"}},
		{"/api/v1", apipath.Path{Version: "v1"}},
		{"/api/v1/nodes/n1", apipath.Path{Version: "v1", Resource: "nodes", Name: "n1"}},
		{"/api/v1/namespaces", apipath.Path{Version: "v1", Resource: "namespaces"}},
		{"/api/v1/namespaces/shop", apipath.Path{Version: "v1", Resource: "namespaces", Name: "shop"}},
		{"/api/v1/namespaces/shop/status", apipath.Path{Version: "v1", Resource: "namespaces", Name: "shop", Subresource: "status"}},
		{"/api/v1/namespaces/shop/pods", apipath.Path{Version: "v1", Resource: "pods", Namespace: "shop"}},
		{"/apis/apps/v1/namespaces/shop/deployments/web/scale", apipath.Path{Group: "apps", Version: "v1", Resource: "deployments", Namespace: "shop", Name: "web", Subresource: "scale"}},
		{"/api/v1/nodes/n1/proxy/metrics", apipath.Path{Version: "v1", Resource: "nodes", Name: "n1", Subresource: "proxy"}},
		{"/api/v1/../v1//namespaces/shop/./pods/", apipath.Path{Version: "v1", Resource: "pods", Namespace: "shop"}},
	} {
		got, err := apipath.Parse(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if diff := cmp.Diff(c.want, got, cmpopts.IgnoreUnexported(apipath.Path{}), cmpopts.IgnoreFields(apipath.Path{}, "Clean", "Query")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.text, diff)
		}
	}
}

func TestParseRefusesOtherServers(t *testing.T) {
	for _, text := range []string{"https://example.com/api", "//example.com/api", "", "mailto:x", "/api/v1?a=%zz", "/api\x7f"} {
		if p, err := apipath.Parse(text); err == nil {
			t.Errorf("%q is read as %s", text, p)
		}
	}
}

func TestStringIsCanonical(t *testing.T) {
	p, err := apipath.Parse("/api/v1/x/../pods?b=2&a=1")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := p.String(), "/api/v1/pods?a=1&b=2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestRefusal(t *testing.T) {
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
		p, err := apipath.Parse(c.path)
		if err != nil {
			t.Errorf("%s: %v", c.path, err)
			continue
		}
		if got := p.Refusal(c.method); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s %s: refusal %q, want %q in it", c.method, c.path, got, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("/api/v1/namespaces/shop/pods/web?x=1")
	f.Add("/apis/apps/v1/../../x")
	f.Add("/api/v1/pods%3Fwatch=true")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := apipath.Parse(text)
		if err != nil {
			return
		}
		again, err := apipath.Parse(p.String())
		if err != nil {
			t.Fatalf("%q is a path and its canonical form is not: %v", text, err)
		}
		if again.Refusal("GET") != p.Refusal("GET") {
			t.Errorf("%q is judged %q, its canonical form %q is judged %q", text, p.Refusal("GET"), p.String(), again.Refusal("GET"))
		}
	})
}
