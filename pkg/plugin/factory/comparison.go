package factory

import (
	"context"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/dialects"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
)

// Comparison is Evaluation for two sides, each the policies that flags name: the options are those of
// both, and the sides have the policies of each. The inputs of policies, such as exceptions, belong to the
// side that they were read for; those of a cluster, or among the objects, to both.
func (f *Factory) Comparison(ctx context.Context, args []string, request engine.Request, named [2]flags.Policies) (*preview.Options, [2]preview.Policies, error) {
	var sides [2]preview.Policies
	o := f.options(request)
	o.Annotate = false // the annotation names the policy
	of := map[*engine.Manifest]int{}
	for side := range named {
		documents, err := f.readPolicies(ctx, o, &named[side])
		if err != nil {
			return nil, sides, err
		}
		for _, d := range documents {
			if d.Origin != cluster.Origin || dialects.Accepts(o.Dialects, d.Key.GroupKind) == engine.Policy {
				of[d.Manifest] = side
			}
		}
		o.Documents = append(o.Documents, documents...)
	}
	if err := f.addInputs(ctx, o, named[0].FromCluster || named[1].FromCluster); err != nil {
		return nil, sides, err
	}
	if err := f.complete(ctx, o, args); err != nil {
		return nil, sides, err
	}
	for side := range sides {
		sides[side] = o.Policies
		sides[side].Documents = slices.DeleteFunc(slices.Clone(o.Documents), func(d engine.Document) bool {
			owner, owned := of[d.Manifest]
			return owned && owner != side
		})
	}
	return o, sides, nil
}
