package cluster

import (
	"errors"
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

type passed struct{}

func (passed) Error() string                                   { return "passed" }
func (passed) RoundTrip(*http.Request) (*http.Response, error) { return nil, passed{} }

func TestReadOnlyTransport(t *testing.T) {
	const pods = "/api/v1/namespaces/shop/pods/web"
	for _, c := range []struct {
		method, target string
		passes         bool
	}{
		{"GET", pods, true},
		{"GET", "/api/v1/namespaces/token", true},
		{"GET", "/apis/apps/v1/namespaces/exec/deployments/proxy/scale", true},
		{"GET", pods + "/log", true},
		{"HEAD", pods, true},
		{"GET", "/openapi/v3", true},
		{"GET", "/proxy" + pods, true},
		{"GET", pods + "/exec?command=rm", false},
		{"GET", "/proxy" + pods + "/exec", false},
		{"GET", pods + "/attach", false},
		{"GET", pods + "/portforward", false},
		{"GET", "/api/v1/nodes/n/proxy/run", false},
		{"GET", "/api/v1//namespaces/shop/./services/s/proxy", false},
		{"POST", "/api/v1/namespaces/shop/pods", false},
		{"POST", "/api/v1/namespaces/shop/pods?dryRun=All", true},
		{"POST", "/api/v1/namespaces/shop/pods?dryRun=", false},
		{"POST", "/api/v1/namespaces/shop/pods?dryRun=All&dryRun=None", false},
		{"POST", "/api/v1/namespaces/shop/serviceaccounts/default/token?dryRun=All", false},
		{"PUT", pods, false},
		{"PATCH", pods, false},
		{"PATCH", pods + "?dryRun=All", true},
		{"PATCH", pods + "?dryRun=all", false},
		{"DELETE", pods, false},
		{"OPTIONS", pods, false},
		{"POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", true},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", true},
		{"POST", "/apis/authorization.k8s.io/v1/namespaces/shop/localsubjectaccessreviews", true},
		{"POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", true},
		{"POST", "/proxy/apis/authentication.k8s.io/v1/selfsubjectreviews", true},
		{"POST", "/apis/authentication.k8s.io/v1/tokenreviews", false},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/x", false},
		{"PUT", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", false},
		{"POST", "/apis/example.com/v1/selfsubjectaccessreviews", false},
	} {
		checkPasses(t, ReadOnlyBut("/proxy", nil)(passed{}), c.method, c.target, c.passes)
	}
}

// checkPasses demands that a request is sent, or refused.
func checkPasses(t *testing.T, through http.RoundTripper, method, target string, passes bool) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "https://127.0.0.1"+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = through.RoundTrip(request) // there is no answer
	var refused *RefusedError
	if errors.Is(err, passed{}) != passes || errors.As(err, &refused) == passes {
		t.Errorf("%s %s: got %v", method, target, err)
	}
}

// A connection for reports passes what writes one of them, and nothing else that the other does not.
func TestReadOnlyTransportForReports(t *testing.T) {
	const reports = "/apis/wgpolicyk8s.io/v1alpha2/namespaces/shop/policyreports"
	transport := ReadOnlyBut("/proxy", []schema.GroupResource{{Group: "wgpolicyk8s.io", Resource: "policyreports"}})(passed{})
	for _, c := range []struct {
		method, target string
		passes         bool
	}{
		{"GET", "/api/v1/pods", true},
		{"PATCH", reports + "/a", true},
		{"PATCH", "/proxy" + reports + "/a?fieldManager=m&force=true", true},
		{"DELETE", reports + "/a", true},
		{"DELETE", reports, false},
		{"POST", reports, false},
		{"PUT", reports + "/a", false},
		{"PATCH", reports + "/a/status", false},
		{"DELETE", "/apis/wgpolicyk8s.io/v1alpha2/clusterpolicyreports/a", false},
		{"PATCH", "/apis/example.com/v1alpha2/namespaces/shop/policyreports/a", false},
		{"PATCH", "/api/v1/namespaces/shop/pods/web", false},
		{"DELETE", "/api/v1/namespaces/shop", false},
		{"PATCH", reports + "/../pods/web", false},
		{"DELETE", "/api/v1/../.." + reports + "/a", false},
		{"DELETE", reports + "//a", false},
	} {
		checkPasses(t, transport, c.method, c.target, c.passes)
	}
}
