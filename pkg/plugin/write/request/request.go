// Package request plans the one request that makes a change: the smallest apply
// configuration, or a guarded JSON patch for what server-side apply cannot express.
//
// It guesses nothing. An apply configuration is sent only if structured-merge-diff, the server's own merge,
// run here with the object's real managedFields, results in exactly the wanted object and takes no more than
// the changed fields. Everything else, mainly removals, becomes a JSON patch that fails if the object has
// changed since it was read.
//
// Both kinds of request are first sent as a dry run. Classify tells the differences of the server's response
// from the wanted object, and Takeovers the managers that would lose fields.
//
// A change is compared here once more than in the evaluation that found it, since
// the fields that engine/diff names for people and files fit no request:
// structured-merge-diff's comparison says what an apply would own, by the server's
// rules, and a JSON patch counts list elements by index in a changing list.
//
// The package does no I/O and never puts a field's value into a string: values may be
// secret, paths are not. It is apart from package write because plans, journals and
// previews say how a change would be sent, and send nothing.
package request

import (
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// Input is a change of an object at one endpoint of the server.
type Input struct {
	// Live is the present object with its managedFields: planning on a printed or cached copy loses data.
	Live *unstructured.Unstructured
	// After is the wanted object. It may be Live itself.
	After *unstructured.Unstructured
	// Subresource is the endpoint to write to: "" for the object itself,
	// "status" or "scale".
	Subresource string
	// Manager is the field manager of the request.
	Manager string
	// Types has the schema of the object's group and version; nil if there is none.
	Types managedfields.TypeConverter
}

// Method is the kind of request.
type Method string

// The methods; None if no request is needed.
const (
	None      Method = "none"
	Apply     Method = "apply"
	JSONPatch Method = "json-patch"
)

// Request is a planned request. It is made by Plan and PlanJSONPatch.
type Request struct {
	Method Method
	// Reason is why the request is not a server-side apply; zero if it is one.
	Reason Reason
	// Body to send. Apply is sent with force, since the response to the dry run (Takeovers), and not the
	// server's conflicts, shows the managers that lose fields.
	Body []byte
	// Live is the object that was read, and Want the expected response: the normalised After without
	// managedFields, resourceVersion and generation.
	Live, Want *unstructured.Unstructured
	// Changed holds the fields that are added or get another value, Removed the removed ones. List elements
	// are named by key if the schema is known, otherwise by index.
	Changed, Removed *fieldpath.Set

	manager, subresource string
	was                  map[string]any // Live, normalised like Want
}

// ReasonKind is a reason against server-side apply.
type ReasonKind string

// The reasons, in the order of the checks.
const (
	NoSchema       ReasonKind = "no schema"
	InvalidLive    ReasonKind = "live object does not fit its schema"
	InvalidWant    ReasonKind = "wanted object does not fit its schema"
	Null           ReasonKind = "null"
	Removal        ReasonKind = "removal"
	Order          ReasonKind = "order"
	OtherVersion   ReasonKind = "own fields are recorded in another version"
	ForeignElement ReasonKind = "list element applied by another manager"
	UnfitBody      ReasonKind = "apply configuration does not fit the schema"
	Simulation     ReasonKind = "apply would give another object"
	Overreach      ReasonKind = "apply would take more fields"
	ApplyRefused   ReasonKind = "server cannot apply"
	ApplyLoses     ReasonKind = "apply would lose data"
	// Ownership: the manager of the request must not own the fields afterwards.
	Ownership ReasonKind = "apply would keep the fields"
)

// Reason is the reason why a change is not written by server-side apply; zero if it is.
type Reason struct {
	Kind ReasonKind
	// Detail names fields or managers; it never holds values.
	Detail string
}

// String is "removal: .metadata.labels.tier".
func (r Reason) String() string {
	if r.Detail == "" {
		return string(r.Kind)
	}
	return string(r.Kind) + ": " + r.Detail
}

// None reports whether there is no reason.
func (r Reason) None() bool { return r.Kind == "" }

// maxOperations is the API server's limit for one JSON patch; more are a 413.
const maxOperations = 10_000

// Plan returns the request that turns Live into After: server-side apply if it is exact
// and leaves nothing that other owners would conflict with, otherwise a guarded JSON
// patch.
//
// It fails if the change alters the identity of the object, if the live object lacks the fields that guard a
// request, or if a JSON patch needs more operations than the server takes.
func Plan(in Input) (Request, error) {
	r, err := newRequest(in)
	if err != nil || r.Method == None {
		return r, err
	}
	body, why := r.applyConfiguration(in.Types)
	if !why.None() {
		return r.jsonPatch(why)
	}
	r.Method = Apply
	r.Body, err = json.Marshal(body)
	return r, err
}

// PlanJSONPatch plans like Plan, but never server-side apply: the fall-back for
// when the server cannot apply, or would lose data. The reason is recorded in
// the request. There is no way back from a JSON patch to server-side apply.
func PlanJSONPatch(in Input, why Reason) (Request, error) {
	r, err := newRequest(in)
	if err != nil || r.Method == None {
		return r, err
	}
	r.compareTyped(in.Types)
	return r.jsonPatch(why)
}

// newRequest normalises both states. The method is None if they are equal, and not
// chosen yet otherwise.
func newRequest(in Input) (Request, error) {
	r := Request{
		Live: in.Live, manager: in.Manager, subresource: in.Subresource,
		Changed: fieldpath.NewSet(), Removed: fieldpath.NewSet(),
	}
	if err := checkIdentity(in.Live, in.After); err != nil {
		return r, err
	}
	was := diff.WithoutBookkeeping(in.Live.Object) // as the server sent it
	want, err := roundTrip(diff.WithoutBookkeeping(in.After.Object))
	if err != nil {
		return r, fmt.Errorf("changed object: %w", err)
	}
	restoreServerOwned(want, was)
	encodeStringData(want)
	r.was, r.Want = was, &unstructured.Unstructured{Object: want}
	if equal(was, want) {
		r.Method = None
		return r, nil
	}
	return r, checkGuards(in.Live)
}

// jsonPatch finishes a request as a JSON patch. The first operation is the guard: a stale resourceVersion
// fails with 409, whereas a failing `test` would be a 422 without a reason.
func (r Request) jsonPatch(why Reason) (Request, error) {
	edits := diff.Edits(r.was, r.Want.Object)
	if len(edits) >= maxOperations {
		return r, fmt.Errorf("the change needs %d JSON patch operations, the server takes %d", len(edits)+1, maxOperations)
	}
	guard := diff.Edit{
		Op: diff.OpReplace, Path: fieldpath.MakePathOrDie("metadata", "resourceVersion"),
		Value: r.Live.GetResourceVersion(),
	}
	r.Method, r.Reason = JSONPatch, why
	var err error
	r.Body, err = json.Marshal(append([]diff.Edit{guard}, edits...))
	if r.Changed.Empty() && r.Removed.Empty() {
		r.Changed, r.Removed = setsOf(edits)
	}
	return r, err
}

// compareTyped sets Changed and Removed if there is a schema.
func (r *Request) compareTyped(types managedfields.TypeConverter) {
	if types == nil {
		return
	}
	a := applier{Request: r, types: types}
	if why := a.typeObjects(); why.None() {
		a.compare()
	}
}

// setsOf returns the fields that edits touch; those in lists by index.
func setsOf(edits []diff.Edit) (changed, removed *fieldpath.Set) {
	changed, removed = fieldpath.NewSet(), fieldpath.NewSet()
	for _, e := range edits {
		if e.Op == diff.OpRemove {
			removed.Insert(e.Path)
		} else {
			changed.Insert(e.Path)
		}
	}
	return changed, removed
}

func checkGuards(live *unstructured.Unstructured) error {
	for field, value := range map[string]string{
		"resourceVersion": live.GetResourceVersion(), "uid": string(live.GetUID()),
	} {
		if value == "" {
			return fmt.Errorf("the live object has no metadata.%s, so a write could not be guarded against other writers", field)
		}
	}
	return nil
}

// StatusSubresource is the endpoint for the fields below .status, if a kind has it.
const StatusSubresource = "status"

// EndpointOf returns the endpoint for a field of such a kind: StatusSubresource, or "" for the object itself.
func EndpointOf(field fieldpath.Path) string {
	if name := field[0].FieldName; name != nil && *name == "status" {
		return StatusSubresource
	}
	return ""
}

// SplitStatus divides a change of an object whose kind has a /status endpoint: a server ignores each part at
// the endpoint of the other. Object is the wanted object with its live status; status is the live object with
// the wanted status, and nil if the change does not touch it.
func SplitStatus(live, after *unstructured.Unstructured) (object, status *unstructured.Unstructured) {
	if diff.Same(live.Object["status"], after.Object["status"]) {
		return after, nil
	}
	return withStatusOf(after, live), withStatusOf(live, after)
}

func withStatusOf(object, from *unstructured.Unstructured) *unstructured.Unstructured {
	fields := maps.Clone(object.Object)
	delete(fields, "status")
	if status, ok := from.Object["status"]; ok {
		fields["status"] = status
	}
	return &unstructured.Unstructured{Object: fields}
}
