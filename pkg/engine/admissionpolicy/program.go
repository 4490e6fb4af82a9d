package admissionpolicy

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// program is all policies, each with its bindings, in order.
type program struct {
	engine.Descriptions
	units    []unit
	asksUser bool // some policy asks who makes the request
}

// invoked has the policies that ran in the first round and want to run again, by policy,
// binding and parameter.
type invoked map[engine.RuleRef]bool

// Evaluate runs the policies. In the second round only those run that ran in the
// first and are to be reinvoked, as in an API server, which has the second round
// for them whenever any mutation was applied at all.
func (p *program) Evaluate(ctx context.Context, t engine.Target, w *engine.World, sink engine.Sink) (*unstructured.Unstructured, error) {
	r := &run{ctx: ctx, target: t, world: w, object: t.Object, sink: sink, asksUser: p.asksUser, excluded: excluded(t), reinvocable: invoked{}}
	if t.Request.Reinvocation {
		if t.Invocation != nil {
			r.again, _ = t.Invocation.Kept.(invoked)
		}
		if len(r.again) == 0 {
			return t.Object, ctx.Err()
		}
	}
	for i := range p.units {
		if err := r.unit(&p.units[i]); err != nil {
			return nil, err
		}
	}
	if t.Invocation != nil && !t.Request.Reinvocation {
		t.Invocation.Kept = r.reinvocable
		t.Invocation.Again = r.applied && len(r.reinvocable) > 0 && r.denied == ""
	}
	engine.HandOver(sink, r.steps, r.denied)
	if r.denied != "" { // no policy changes an object that would be denied
		return t.Object, ctx.Err()
	}
	return r.object, ctx.Err()
}

// excluded returns what no policy of the API ever sees, if the object is such
// (pkg/admission/plugin/policy/generic in k8s.io/apiserver).
func excluded(t engine.Target) string {
	switch t.Key.Group {
	case apiGroup:
		switch t.Key.Kind {
		case kindPolicy, kindBinding, "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
			return "admission policies and their bindings"
		}
	case "authentication.k8s.io", "authorization.k8s.io":
		return "reviews of access"
	}
	if t.Request.Operation == engine.OperationDelete {
		return "what is being deleted"
	}
	return ""
}
