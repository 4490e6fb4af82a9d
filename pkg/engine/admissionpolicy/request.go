package admissionpolicy

import (
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel/match"
)

// request is the admission request that a round simulates, for matching and for
// expressions.
type request struct {
	candidate match.Candidate
	typed     *admissionv1.AdmissionRequest
	fields    map[string]any
	created   bool
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
	q := &request{created: created, candidate: match.Candidate{
		Resource: r.resource(), Subresource: t.Key.Subresource, Operation: operation,
		Namespace: t.Key.Namespace, Name: t.Key.Name, Object: t.Object, OldObject: t.OldObject,
		Surroundings: r,
	}}
	if isNamespace(t) {
		q.candidate.Namespace = t.Key.Name
	}
	q.typed = typedRequest(&q.candidate, t)
	if r.asksUser {
		q.typed.UserInfo, r.nobody = engine.RequestUser(r.ctx, t.Request, r.world)
	}
	q.fields = requestFields(q.typed)
	if r.nobody != nil {
		q.fields["userInfo"] = cel.UnknownUser{}
	}
	return q
}

func isNamespace(t engine.Target) bool { return t.Key.Group == "" && t.Key.Kind == "Namespace" }

// resource returns the resource of the object: from the target, or else from the mapper,
// or else the usual plural of the kind.
func (r *run) resource() schema.GroupVersionResource {
	if m := r.target.Mapping; m != nil {
		return m.Resource
	}
	gvk := r.target.Object.GroupVersionKind()
	if r.world.Mapper != nil {
		if m, err := r.world.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
			return m.Resource
		}
	}
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return plural
}

// Served reports whether the object's kind is served in a version too.
func (r *run) Served(version string) bool {
	if r.world.Mapper == nil {
		return false
	}
	m, err := r.world.Mapper.RESTMapping(r.target.Key.GroupKind, version)
	return err == nil && m.GroupVersionKind.Version == version
}

func typedRequest(q *match.Candidate, t engine.Target) *admissionv1.AdmissionRequest {
	kind, resource := metav1.GroupVersionKind(t.Object.GroupVersionKind()), metav1.GroupVersionResource(q.Resource)
	return &admissionv1.AdmissionRequest{
		Kind: kind, Resource: resource, SubResource: q.Subresource,
		RequestKind: &kind, RequestResource: &resource, RequestSubResource: q.Subresource,
		Name: q.Name, Namespace: q.Namespace, Operation: admissionv1.Operation(q.Operation), DryRun: &t.Request.DryRun,
	}
}

// requestFields returns what expressions see as request. As on a server, empty fields are
// left out.
func requestFields(q *admissionv1.AdmissionRequest) map[string]any {
	kind := map[string]any{"group": q.Kind.Group, "version": q.Kind.Version, "kind": q.Kind.Kind}
	resource := map[string]any{"group": q.Resource.Group, "version": q.Resource.Version, "resource": q.Resource.Resource}
	fields := map[string]any{
		"kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
		"operation": string(q.Operation), "userInfo": engine.UserInfoFields(&q.UserInfo), "dryRun": *q.DryRun,
		"options": map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": optionsKind(q.Operation)},
	}
	for name, text := range map[string]string{
		"name": q.Name, "namespace": q.Namespace, "subResource": q.SubResource, "requestSubResource": q.RequestSubResource,
	} {
		if text != "" {
			fields[name] = text
		}
	}
	return fields
}

func optionsKind(o admissionv1.Operation) string {
	if o == admissionv1.Create {
		return "CreateOptions"
	}
	return "UpdateOptions"
}

// input returns what the expressions of a policy see, except the Namespace.
func (r *run) input(created bool, p *param) cel.Input {
	q := r.request(created)
	in := cel.Input{
		Object: r.object.Object, Request: q.typed, RequestMap: q.fields,
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

// namespaceAnswer is the Namespace of the object, or why it is not known.
type namespaceAnswer struct {
	content map[string]any // nil where the object is in none
	err     error
}

// NamespaceLabels implements match.Surroundings.
func (r *run) NamespaceLabels(keys []string) (map[string]string, error) {
	return r.target.NamespaceLabels(r.ctx, r.world, keys)
}

// readNamespace finds the Namespace of the object, once for all policies.
func (r *run) readNamespace() *namespaceAnswer {
	if r.namespace != nil {
		return r.namespace
	}
	r.namespace = &namespaceAnswer{}
	if isNamespace(r.target) {
		return r.namespace
	}
	namespace, err := r.target.ReadNamespace(r.ctx, r.world)
	if r.namespace.err = err; namespace != nil {
		r.namespace.content = namespace.Object
	}
	return r.namespace
}

// typesAnswer is the schema by which objects of the kind merge.
type typesAnswer struct {
	types managedfields.TypeConverter // nil where there is no schema
	err   error
}

func (r *run) readTypes() *typesAnswer {
	if r.types != nil {
		return r.types
	}
	r.types = &typesAnswer{}
	if r.world.Reader == nil {
		return r.types
	}
	s, err := r.world.Reader.Schema(r.ctx, r.target.Object.GroupVersionKind())
	if err != nil {
		r.types.err = &cel.UnsupportedError{Reason: "the schema of the object cannot be read: " + err.Error()}
		return r.types
	}
	r.types.types = s.Types
	return r.types
}
