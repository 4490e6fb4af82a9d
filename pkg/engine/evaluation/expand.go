package evaluation

import (
	"context"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/workload"
)

// expanded returns a change and, behind it, those of what controllers would create for its object as the change
// leaves it: for a Deployment a ReplicaSet and for that a Pod. What is between is left out where no rule does
// anything to it.
func (e *Evaluation) expanded(ctx context.Context, c *engine.Change) ([]*engine.Change, error) {
	out := []*engine.Change{c}
	if c.Subject.Subresource != "" || c.Target.Request.Operation == engine.OperationDelete || c.Before == nil || workload.Controlled(c.Before) {
		return out, nil
	}
	for of := c; ; {
		from := of.ToShow().After // without what was made of Secrets, which the Pod would show
		if of.Denied() {
			from = of.ToShow().Before
		}
		object, user, makes := workload.Make(from)
		if !makes {
			return out, nil
		}
		next := engine.Target{
			Object: object, Origin: c.Target.Origin, Ignored: e.ignored(c.Before), Namespace: c.Target.Namespace,
			Request: engine.Request{Operation: engine.OperationCreate, User: user, DryRun: c.Target.Request.DryRun},
		}
		object.SetNamespace(c.Subject.Namespace)
		next.Key = of.Subject.Made(object, "")
		if w := e.world.Mapper; w != nil {
			next.Mapping, _ = w.RESTMapping(next.Key.GroupKind, next.Key.Version)
		}
		made, err := e.Evaluate(ctx, next, true)
		if err != nil {
			return nil, err
		}
		if made.Writes() || made.Incomplete() || !workload.Is(next.Key.GroupKind) {
			out = append(out, made)
		}
		of = made
	}
}
