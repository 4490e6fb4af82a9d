package cluster

import (
	"net/http"
	"net/url"
	"testing"

	"k8s.io/client-go/rest"
)

func TestWhatDescribesTheAPI(t *testing.T) {
	for path, want := range map[string]bool{
		"/api": true, "/api/": true, "/apis": true, "/api/v1": true, "/apis/apps": true, "/apis/apps/v1": true, "/openapi/v3": true, "/openapi/v3/apis/apps/v1": true,
		"/": false, "/version": false, "/api/v1/pods": false, "/apis/apps/v1/deployments": false, "/api/v1/namespaces/openapi": false, "/apis/a/v1/namespaces/n/apis/x": false,
	} {
		for _, base := range []string{"", "/k8s/clusters/c-1"} {
			counts := describesAPI(&rest.Config{Host: "https://example.com" + base})
			if got := counts(&http.Request{URL: &url.URL{Path: base + path}}); got != want {
				t.Errorf("%s%s: %t", base, path, got)
			}
		}
	}
}
