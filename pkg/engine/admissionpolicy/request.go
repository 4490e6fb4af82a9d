package admissionpolicy

import (
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel/match"
)

// request is the admission request that a round simulates, for matching and for
// expressions.
type request struct {
	candidate match.Candidate
	seen      cel.Request
	fields    map[string]any
}

// request returns the simulated request, which all policies share. created simulates a
// creation instead of the operation that was asked for.
func (r *run) request(created bool) *request {
	slot := &r.requests[0]
	if created {
		slot = &r.requests[1]
	}
	if *slot == nil {
		*slot = r.newRequest(created)
	}
	return *slot
}

func (r *run) newRequest(created bool) *request {
	t := r.target
	operation := t.Request.Operation
	switch {
	case created || operation == engine.OperationCreate:
		operation, t.OldObject = engine.OperationCreate, nil
	case operation == "" || operation == engine.OperationAuto:
		operation = engine.OperationUpdate
	}
	q := &request{candidate: match.CandidateOf(r.whole, &t, r.world, operation)}
	if isNamespace(t) {
		q.candidate.Namespace = t.Key.Name
	}
	c := &q.candidate
	q.seen = cel.Request{
		Kind: t.Object.GroupVersionKind(), Resource: c.Resource, Subresource: c.Subresource, Namespace: c.Namespace, Name: c.Name,
		Operation: operation, DryRun: t.Request.DryRun,
	}
	if r.asksUser {
		q.seen.User, r.nobody = engine.RequestUser(r.ctx, t.Request, r.world)
		q.seen.Nobody = r.nobody
	}
	q.fields = q.seen.Fields()
	options := "UpdateOptions"
	if operation == engine.OperationCreate {
		options = "CreateOptions"
	}
	q.fields["options"] = map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": options}
	if c.Subresource != "" {
		q.fields["requestSubResource"] = c.Subresource
	}
	return q
}

func isNamespace(t engine.Target) bool { return t.Key.Group == "" && t.Key.Kind == "Namespace" }

// input returns what the expressions of a policy see, except the Namespace.
func (r *run) input(created bool, p *param) cel.Input {
	q := r.request(created)
	in := cel.Input{
		Object: r.object.Object, Request: &q.seen, RequestMap: q.fields,
		Access: r.world.Access, User: r.target.Request.User, Explain: r.explains,
	}
	if q.candidate.OldObject != nil {
		in.OldObject = q.candidate.OldObject.Object
	}
	if p != nil {
		in.Params = p.content
	}
	return in
}

// matched is the result of matching a policy and its binding.
type matched struct {
	result  match.Result
	of      *match.Constraints // whose result it is
	created bool               // it is that of a creation
}

// match compares the request with a policy and its binding. Where the operation alone
// keeps them apart, and the user asked for none, a creation is tried. The error is why
// it is not known.
func (r *run) match(u *unit) (matched, error) {
	m, err := r.matchAs(u, false)
	auto := r.target.Request.Operation == "" || r.target.Request.Operation == engine.OperationAuto
	if err != nil || !auto || !m.result.ByOperation() {
		return m, err
	}
	if created, err := r.matchAs(u, true); err != nil || created.result.Applies() {
		return created, err
	}
	return m, nil
}

func (r *run) matchAs(u *unit, created bool) (matched, error) {
	candidate := &r.request(created).candidate
	m := matched{of: u.constraints, created: created}
	var err error
	if m.result, err = m.of.Match(candidate); err != nil || !m.result.Applies() {
		return m, err
	}
	version := m.result.Version
	if u.binding != nil && u.binding.resources != nil {
		m.of = u.binding.resources
		if m.result, err = m.of.Match(candidate); err != nil || !m.result.Applies() {
			return m, err
		}
	}
	if version != "" {
		return m, &cel.UnsupportedError{Reason: fmt.Sprintf("the policy is for version %s, and the object is in version %s: only an API server can convert it",
			version, candidate.Resource.Version)}
	}
	return m, nil
}

// explain says why a policy, or its binding, does not match.
func (r *run) explain(u *unit, m matched) error {
	mismatch := m.of.Explain(m.result, &r.request(m.created).candidate)
	if m.of != u.constraints {
		return fmt.Errorf("binding %s: %w", u.binding.name, mismatch)
	}
	return mismatch
}

// namespace returns the Namespace of the object; nil where the object is in none.
func (r *run) namespace() (map[string]any, error) {
	if isNamespace(r.target) {
		return nil, nil
	}
	namespace, err := r.target.ReadNamespace(r.ctx, r.world)
	if err != nil || namespace == nil {
		return nil, err
	}
	return namespace.Object, nil
}

// schema returns that by which objects of the kind merge.
func (r *run) schema() (engine.Schema, error) {
	if r.world.Reader == nil {
		return engine.Schema{}, nil
	}
	s, err := r.world.Reader.Schema(r.ctx, r.target.Object.GroupVersionKind())
	if err != nil {
		return s, &cel.UnsupportedError{Reason: "the schema of the object cannot be read: " + err.Error()}
	}
	return s, nil
}
