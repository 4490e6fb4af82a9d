package cluster

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Origin is the Origin of Documents from the cluster.
const Origin = "cluster"

// PolicyDocuments reads the policies, and their inputs, that are installed in
// the cluster: all objects of the kinds that role does not call foreign. Kinds
// of the core group are left out: a Namespace or a ConfigMap may be an input,
// but which one is for the policy to ask. Beside
// what could be read, it returns an error, usually an *engine.UnreadableError, for
// each kind that could not.
func (c *Client) PolicyDocuments(ctx context.Context, role func(schema.GroupKind) engine.Role) ([]engine.Document, []error) {
	served, err := c.served(ctx)
	if err != nil {
		return nil, []error{err}
	}
	var documents []engine.Document
	var failures []error
	known := uids{}
	for _, r := range served.policies(role) {
		for list, err := range c.list(ctx, r, query{}) {
			if err != nil {
				failures = append(failures, unreadable(err, r, query{}))
				break
			}
			for _, u := range list.items {
				if !known.again(string(u.GetUID())) {
					documents = append(documents, engine.NewDocument(u, Origin))
				}
			}
		}
	}
	return documents, failures
}

// policies are the resources that PolicyDocuments reads.
func (cat *catalog) policies(role func(schema.GroupKind) engine.Role) []*resource {
	var out []*resource
	for _, versions := range cat.kinds {
		gk := versions[0].mapping.GroupVersionKind.GroupKind()
		if gk.Group != "" && versions[0].listable && role(gk) != engine.Foreign {
			out = append(out, versions[0])
		}
	}
	return out
}
