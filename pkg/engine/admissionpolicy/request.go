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
)

// request is the admission request that a round simulates, for matching and for
// expressions.
type request struct {
	match   Request
	typed   *admissionv1.AdmissionRequest
	fields  map[string]any
	created bool
}

// request is made once for all policies; created simulates a creation instead of
// the operation that was asked for.
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
	q := &request{created: created, match: Request{
		Resource: r.resource(), Subresource: t.Key.Subresource, Operation: operation,
		Namespace: t.Key.Namespace, Name: t.Key.Name, Object: t.Object, OldObject: t.OldObject,
		NamespaceLabels: r.namespaceLabels, Served: r.served,
	}}
	if isNamespace(t) {
		q.match.Namespace = t.Key.Name
	}
	q.typed = typedRequest(&q.match, t)
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

// resource is the resource of the object: as the target says, as the mapper
// knows, or as kinds usually are called.
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

// served tells whether the object's kind is served in a version too.
func (r *run) served(version string) bool {
	if r.world.Mapper == nil {
		return false
	}
	m, err := r.world.Mapper.RESTMapping(r.target.Key.GroupKind, version)
	return err == nil && m.GroupVersionKind.Version == version
}

func typedRequest(q *Request, t engine.Target) *admissionv1.AdmissionRequest {
	kind, resource := metav1.GroupVersionKind(t.Object.GroupVersionKind()), metav1.GroupVersionResource(q.Resource)
	return &admissionv1.AdmissionRequest{
		Kind: kind, Resource: resource, SubResource: q.Subresource,
		RequestKind: &kind, RequestResource: &resource, RequestSubResource: q.Subresource,
		Name: q.Name, Namespace: q.Namespace, Operation: admissionv1.Operation(q.Operation),
	}
}

// requestFields is what expressions see as request. A server leaves out what is empty.
func requestFields(q *admissionv1.AdmissionRequest) map[string]any {
	kind := map[string]any{"group": q.Kind.Group, "version": q.Kind.Version, "kind": q.Kind.Kind}
	resource := map[string]any{"group": q.Resource.Group, "version": q.Resource.Version, "resource": q.Resource.Resource}
	fields := map[string]any{
		"kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
		"operation": string(q.Operation), "userInfo": engine.UserInfoFields(&q.UserInfo), "dryRun": false,
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

// input is what the expressions of a policy see, but for the Namespace.
func (r *run) input(created bool, p *param) cel.Input {
	q := r.request(created)
	in := cel.Input{
		Object: r.object.Object, Request: q.typed, RequestMap: q.fields,
		Access: r.world.Access, User: r.target.Request.User, Secrets: r.world.Secrets, Explain: r.explain,
	}
	if q.match.OldObject != nil {
		in.OldObject = q.match.OldObject.Object
	}
	if p != nil {
		in.Params = p.content
	}
	return in
}

// mismatch says why a policy, or its binding, passes the object over.
func (r *run) mismatch(u *unit, m matched) error {
	err := m.of.Reason(m.miss, &r.request(m.created).match)
	if m.of != u.constraints {
		return fmt.Errorf("binding %s: %w", u.binding.name, err)
	}
	return err
}

// matched is what became of matching a policy and its binding.
type matched struct {
	miss    Miss         // None where they match
	of      *Constraints // whose miss it is
	created bool         // they match a creation only
}

// match matches a policy and its binding against the request, and against a
// creation where the operation alone keeps them apart and was not asked for. An
// error means that it cannot be said.
func (r *run) match(u *unit) (matched, error) {
	m, err := r.judge(u, false)
	auto := r.target.Request.Operation == "" || r.target.Request.Operation == engine.OperationAuto
	if err != nil || !auto || m.miss != ByOperation {
		return m, err
	}
	if created, err := r.judge(u, true); err != nil || created.miss == None {
		return created, err
	}
	return m, nil
}

func (r *run) judge(u *unit, created bool) (matched, error) {
	q, m := &r.request(created).match, matched{created: created}
	all := []*Constraints{u.constraints}
	if u.binding != nil && u.binding.resources != nil {
		all = append(all, u.binding.resources)
	}
	version := ""
	for i, c := range all {
		v, err := c.Judge(q)
		if err != nil {
			return m, err
		}
		if v.Miss != None {
			m.miss, m.of = v.Miss, c
			return m, nil
		}
		if i == 0 {
			version = v.Version
		}
	}
	if version != "" {
		return m, &UnsupportedError{fmt.Sprintf("the policy is for version %s, and the object is in version %s: only an API server can convert it",
			version, q.Resource.Version)}
	}
	return m, nil
}

// namespaceAnswer is the Namespace of the object, as far as it is known.
type namespaceAnswer struct {
	content  map[string]any // nil where the object is in none
	labels   map[string]string
	warnings []engine.Warning
	err      error
}

func (r *run) namespaceLabels() (map[string]string, error) {
	ns := r.readNamespace()
	return ns.labels, ns.err
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
	namespace, assumed, err := r.target.ReadNamespace(r.ctx, r.world.Reader)
	switch {
	case err != nil:
		r.namespace.err = err
	case namespace != nil:
		r.namespace.content, r.namespace.labels = namespace.Object, namespace.GetLabels()
	}
	if assumed != "" {
		r.namespace.warnings = []engine.Warning{assumed}
	}
	return r.namespace
}

// typesAnswer is how the object's kind merges.
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
		r.types.err = &UnsupportedError{"the schema of the object cannot be read: " + err.Error()}
		return r.types
	}
	r.types.types = s.Types
	return r.types
}
