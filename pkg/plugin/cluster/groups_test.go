package cluster_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// A server that lists more groups than any has is not asked for the resources of each.
func TestAPIGroupsAreCountedBeforeTheyAreRead(t *testing.T) {
	const (
		group = `{"name":"g%[1]d.example.com","versions":[{"groupVersion":"g%[1]d.example.com/v1","version":"v1"}],"preferredVersion":{"groupVersion":"g%[1]d.example.com/v1","version":"v1"}}`
		item  = `{"metadata":{"name":"g%d.example.com"},"versions":[{"version":"v1","resources":[]}]}`
	)
	list := func(n int, element string) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, element, i)
		}
		return b.String()
	}
	const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	for name, c := range map[string]struct{ groups, contentType, body string }{
		"groups":                      {"/apis", "application/json", `{"kind":"APIGroupList","groups":[` + list(50_000, group) + `]}`},
		"groups with their resources": {"/apis", aggregated, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[` + list(50_000, item) + `]}`},
		"versions of the core group":  {"/api", "application/json", `{"kind":"APIVersions","versions":[` + list(50_000, `"v%d"`) + `]}`},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int64
			server := &fakeServer{Server: httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				w.Header().Set("Content-Type", "application/json")
				switch body, known := discoveryAnswers()[r.URL.Path]; {
				case r.URL.Path == c.groups:
					w.Header().Set("Content-Type", c.contentType)
					fmt.Fprint(w, c.body)
				case known:
					fmt.Fprint(w, body)
				default:
					fmt.Fprint(w, `{"kind":"APIResourceList","resources":[]}`)
				}
			}))}
			t.Cleanup(server.Close)
			_, err := server.client(t, cluster.Options{}).Served(t.Context())
			var size *transport.SizeError
			if want := "lists more than 2000 versions of API groups"; !errors.As(err, &size) || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want that it %s", err, want)
			}
			if n := requests.Load(); n > 10 {
				t.Errorf("%d requests", n)
			}
		})
	}
}
