package cluster_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

// What discovery says may be true of another cluster: a listing, an object and the answer to a write are of
// the kind that was asked for.
func TestAnswersOfAnotherKind(t *testing.T) {
	const item, path = `"metadata":{"name":"a","uid":"u"}`, "/api/v1/namespaces/shop/configmaps/a"
	for body, want := range map[string]string{
		`{"kind":"ConfigMapList","apiVersion":"v1","items":[{` + item + `}]}`:                                       "",
		`{"kind":"ConfigMapList","apiVersion":"v1","items":[{"apiVersion":"v1","kind":"ConfigMap",` + item + `}]}`:  "",
		`{"kind":"SecretList","apiVersion":"v1","items":[{` + item + `}]}`:                                          "another kind: Secret",
		`{"kind":"ConfigMapList","apiVersion":"v1","items":[{"apiVersion":"v1","kind":"Secret",` + item + `}]}`:     "another kind: Secret",
		`{"kind":"CustomNames","apiVersion":"v1","items":[{"apiVersion":"v1","kind":"ConfigMap",` + item + `},{}]}`: "another kind: CustomNames",
	} {
		client := newServer(t, map[string]answer{"GET /api/v1/configmaps?limit=500": {body: body}}).client(t, cluster.Options{})
		_, err := stream(t, client.Source(engine.Scope{}, cluster.SourceOptions{}), engine.Selection{Kind: "ConfigMap"})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v", body, err)
		}
	}
	named := engine.Scope{Namespaces: []string{"shop"}, Only: []engine.ObjectKey{{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "shop", Name: "a"}}}
	for body, good := range map[string]bool{
		`{"kind":"ConfigMap","apiVersion":"v1",` + item + `}`: true, `{"kind":"Secret","apiVersion":"v1",` + item + `}`: false,
		`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}`: false, `{}`: false,
	} {
		client := newServer(t, map[string]answer{"GET " + path: {body: body}, "PATCH " + path + "?fieldValidation=Strict": {body: body}}).client(t, cluster.Options{})
		_, listed := stream(t, client.Source(named, cluster.SourceOptions{}), engine.Selection{Kind: "ConfigMap"})
		_, read := client.Get(t.Context(), key("shop", "a"))
		_, written := client.Patch(t.Context(), key("shop", "a"), cluster.Patch{Type: types.MergePatchType, Body: []byte(`{}`)})
		for _, err := range []error{listed, read, written} {
			if good != (err == nil) || err != nil && !strings.Contains(err.Error(), "another object") {
				t.Errorf("%s: got %v", body, err)
			}
		}
	}
}
