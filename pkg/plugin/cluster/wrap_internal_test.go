package cluster

import (
	"testing"

	"k8s.io/client-go/rest"
)

func TestWhatDescribesTheAPI(t *testing.T) {
	for path, want := range map[string]string{
		"/api": resources, "/api/": resources, "/apis": resources, "/api/v1": resources, "/apis/apps": resources, "/apis/apps/v1": resources,
		"/openapi/v3": schemas, "/openapi/v3/apis/apps/v1": schemas,
		"/": "", "/version": "", "/api/v1/pods": "", "/apis/apps/v1/deployments": "", "/api/v1/namespaces/openapi": "", "/apis/a/v1/namespaces/n/apis/x": "",
	} {
		for _, base := range []string{"", "/k8s/clusters/c-1"} {
			if got := described(&rest.Config{Host: "https://example.com" + base}, base+path); got != want {
				t.Errorf("%s%s: %q", base, path, got)
			}
		}
	}
}
