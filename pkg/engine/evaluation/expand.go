package evaluation

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/workload"
)

// Selections returns the objects that programs want from their sources; to expand, also the workloads for
// which such objects may be created.
func Selections(programs []engine.Program, expand bool) []engine.Selection {
	var out, generating []engine.Selection
	for _, p := range programs {
		out = append(out, p.Selections()...)
		if q, ok := p.(engine.Expander); ok {
			generating = append(generating, q.Expands()...)
		}
	}
	if expand {
		out = append(workload.Selections(out), generating...)
	}
	return out
}

// expanded returns a change and, behind it, the changes of objects made from the result.
func (e *Evaluation) expanded(ctx context.Context, c *engine.Change) ([]*engine.Change, error) {
	out := []*engine.Change{c}
	if c.Subject.Subresource != "" || c.Target.Request.Operation == engine.OperationDelete || c.Before == nil {
		return out, nil
	}
	// The objects of controllers: for a Deployment a ReplicaSet and for that a Pod. An object in between is left
	// out where no rule affects it.
	for of := c; !workload.Controlled(c.Before); {
		object, user, makes := workload.Make(result(of))
		if !makes {
			break
		}
		object.SetNamespace(of.Subject.Namespace)
		made, err := e.make(ctx, of, object, "", user)
		if err != nil {
			return nil, err
		}
		if made.Writes() || made.Incomplete() || !workload.Is(made.Subject.GroupKind) {
			out = append(out, made)
		}
		of = made
	}
	for _, p := range e.programs {
		if q, ok := p.(engine.Expander); ok {
			generated, err := e.generated(ctx, q, c)
			if err != nil {
				return nil, err
			}
			out = append(out, generated...)
		}
	}
	return out, nil
}

// generated returns the changes of generated objects, and of objects generated from them.
func (e *Evaluation) generated(ctx context.Context, p engine.Expander, of *engine.Change,
) (out []*engine.Change, err error) {
	for _, g := range p.Expand(result(of)) {
		if g.Err != nil {
			key := of.Subject.Made(g.Object, g.By.Policy)
			out = append(out, &engine.Change{
				Subject: key, Target: engine.Target{Key: key, Object: g.Object, Origin: of.Target.Origin},
				Before: g.Object, After: g.Object,
				Scoped: true, Steps: []engine.Step{{Rule: g.By, Outcome: engine.Failed, Err: g.Err}},
			})
			continue
		}
		made, err := e.make(ctx, of, g.Object, g.By.Policy, engine.UserInfo{})
		if err != nil {
			return nil, err
		}
		below, err := e.generated(ctx, p, made)
		if err != nil {
			return nil, err
		}
		out = append(append(out, made), below...)
	}
	return out, nil
}

// result returns the object to make others of, without content made from Secrets, which they would show.
func result(of *engine.Change) *unstructured.Unstructured {
	if of.Denied() {
		return of.ToShow().Before
	}
	return of.ToShow().After
}

// make evaluates an object that would be made of another.
func (e *Evaluation) make(
	ctx context.Context, of *engine.Change, object *unstructured.Unstructured, template string,
	user engine.UserInfo,
) (*engine.Change, error) {
	t := engine.Target{
		Key: of.Subject.Made(object, template), Object: object, Origin: of.Target.Origin,
		Namespace: of.Target.Namespace,
		Ignored:   of.Target.Ignored,
		Request:   engine.Request{Operation: engine.OperationCreate, User: user, DryRun: of.Target.Request.DryRun},
	}
	if of.Subject.Of == (engine.Maker{}) {
		t.Ignored = e.ignored(of.Before)
	}
	if m := e.world.Mapper; m != nil {
		t.Mapping, _ = m.RESTMapping(t.Key.GroupKind, t.Key.Version)
	}
	return e.Evaluate(ctx, t, true)
}
