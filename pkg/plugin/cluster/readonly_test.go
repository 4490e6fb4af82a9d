package cluster

import (
	"errors"
	"net/http"
	"testing"
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
		request, err := http.NewRequestWithContext(t.Context(), c.method, "https://127.0.0.1"+c.target, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = ReadOnly("/proxy")(passed{}).RoundTrip(request) // there is no answer
		var refused *RefusedError
		if errors.Is(err, passed{}) != c.passes || errors.As(err, &refused) == c.passes {
			t.Errorf("%s %s: got %v", c.method, c.target, err)
		}
	}
}
