package mutatingpolicy_test

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// newGrantedCluster is a cluster of manifests that also answers reviews, and from
// which services and registries can be reached.
func newGrantedCluster(live, others []*unstructured.Unstructured, r engine.Request) (conformance.Cluster, error) {
	c, err := conformance.NewCluster(live, others, r)
	if err == nil {
		c.World.Raw = reviews{c.World.Raw}
		conformance.Grant(c.World)
	}
	return c, err
}

// reviews allows everything that is asked for with a POST.
type reviews struct{ engine.RawReader }

func (r reviews) Raw(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	if method != "POST" {
		return r.RawReader.Raw(ctx, method, path, body)
	}
	review := map[string]any{}
	if err := json.Unmarshal(body, &review); err != nil {
		return nil, err
	}
	review["status"] = map[string]any{"allowed": true, "reason": path}
	return json.Marshal(review)
}
