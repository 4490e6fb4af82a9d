package cel

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// Source is an expression in a policy: a variable, a match condition, a mutation, an annotation.
type Source struct {
	policydecode.Node        // of the expression
	Name, Text        string // a mutation has no name
	JSONPatch         bool   // of a mutation; else an apply configuration
}

// DecodeNamed reads a list of names and expressions. twice reports a duplicate name.
func DecodeNamed(n policydecode.Node, twice func(name policydecode.Node, x Source)) (out []Source) {
	known := map[string]bool{}
	for _, item := range n.List() {
		f := item.Fields()
		x := Source{Node: f.At("expression"), Name: f.At("name").Required()}
		x.Text = x.Required()
		f.Done()
		if x.Name != "" && known[x.Name] && twice != nil {
			twice(f.At("name"), x)
		}
		known[x.Name] = true
		out = append(out, x)
	}
	return out
}

// DecodePatches reads a list of mutations. other, which may be nil, reports the field of the other patch
// type.
func DecodePatches(n policydecode.Node, other func(of policydecode.Node, patchType string)) (out []Source) {
	list := n.List()
	if len(list) == 0 {
		n.Fail("has no mutations")
	}
	for _, item := range list {
		f := item.Fields()
		patchType, own, wrong := f.At("patchType").Text(), "applyConfiguration", "jsonPatch"
		x := Source{JSONPatch: patchType == "JSONPatch"}
		switch {
		case x.JSONPatch:
			own, wrong = wrong, own
		case patchType != "ApplyConfiguration":
			f.At("patchType").Fail("must be ApplyConfiguration or JSONPatch, not %q", patchType)
			if other == nil {
				continue
			}
		}
		if other != nil && f.Has(wrong) {
			other(f.At(wrong), patchType)
		}
		inner := f.At(own).Fields()
		x.Node = inner.At("expression")
		x.Text = x.Required()
		inner.Done()
		f.Elsewhere("below "+own, "expression")
		f.Done()
		out = append(out, x)
	}
	return out
}

// Lint warns of fields that no metadata has, of probably mistaken JSON pointers, and of match conditions that
// are constant. It records conditions about changes.
func (s *Scope) Lint() {
	for _, x := range s.compiled {
		for _, slip := range x.slips {
			x.Lint("%s", slip)
		}
		if x.changing != "" {
			x.Note("the policy acts on updates that change %s: what exists is evaluated unchanged, so nothing is shown", x.changing)
		}
	}
}

// Policy has the common fields of both languages' policies.
type Policy struct {
	Ref         engine.RuleRef
	Constraints *Constraints
	// FailuresIgnored is failurePolicy Ignore, and Reinvoked reinvocationPolicy IfNeeded.
	FailuresIgnored, Reinvoked bool

	Scope                 *Scope
	Conditions, Mutations []*Expression
}

// AsksUser reports whether an expression uses request user information.
func (p *Policy) AsksUser() bool { return p.Scope.Uses("request.userInfo") }

// Describe describes a policy for admission.
func (p *Policy) Describe() engine.Description {
	d := engine.Description{
		Rule: p.Ref, Existing: engine.OnAdmission, Where: p.Constraints.Where(),
		Operations: p.Constraints.Operations(),
	}
	d.AsksOperation = p.Constraints.AsksOperation() ||
		slices.ContainsFunc([]string{"request.operation", "oldObject", "request.oldObject"}, p.Scope.Uses)
	for _, x := range p.Conditions {
		d.Where = append(d.Where, fmt.Sprintf("matchCondition %q", x.Name))
	}
	for _, x := range p.Mutations {
		d.Changes = append(d.Changes, x.paths...)
	}
	d.Changes = engine.Distinct(d.Changes)
	return d
}

// Request returns the value of request for a candidate. The user is only looked up if a policy needs it. As
// on a server, empty fields are omitted.
func (k *Candidate) Request(asksUser bool) map[string]any {
	gvk, r, key := k.Target.Object.GroupVersionKind(), k.Resource, k.Target.Key
	kind := map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}
	resource := map[string]any{"group": r.Group, "version": r.Version, "resource": r.Resource}
	out := map[string]any{
		"kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
		"operation": string(k.Operation), "dryRun": k.Target.Request.DryRun, "userInfo": map[string]any{},
		"name": key.Name, "namespace": key.Namespace, "subResource": key.Subresource,
	}
	maps.DeleteFunc(out, func(_ string, value any) bool { return value == "" })
	if asksUser {
		user, err := engine.RequestUser(k.ctx, k.Target.Request, k.world)
		if out["userInfo"] = engine.UserInfoFields(&user); err != nil {
			out["userInfo"] = NewUnknownUser(err)
		}
	}
	return out
}

// Ignored is a failure that the failurePolicy ignores.
func Ignored(err error) error { return fmt.Errorf("%w (ignored, by the failurePolicy)", err) }

// OutcomeOf returns the outcome of a policy that does not apply or fails: admission refuses the object unless
// the failurePolicy ignores the failure. If this run lacks something, or exceeds its own limit, neither is
// known.
func OutcomeOf(err error, ignored bool) (engine.Outcome, error) {
	switch outcome := engine.OutcomeOf(err); {
	case outcome != engine.Failed || engine.OfThisProgram(err):
		return outcome, err
	case ignored:
		return engine.Skipped, Ignored(err)
	}
	return engine.Denied, fmt.Errorf("%w, so that the object would be denied", err)
}
