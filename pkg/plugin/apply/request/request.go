package request

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Input is one change of one object, as one endpoint of the server sees it.
type Input struct {
	// Live is the object as the server answered it just now, managedFields
	// included: planning on a printed or cached copy loses data.
	Live *unstructured.Unstructured
	// After is the object as it should be. It may be Live itself.
	After *unstructured.Unstructured
	// Subresource is the endpoint to write to: "" for the object itself,
	// "status" or "scale".
	Subresource string
	// Manager is the field manager of the request.
	Manager string
	// Types knows the schema of the object's group and version; nil where there
	// is none.
	Types managedfields.TypeConverter
}

// Method is the kind of request.
type Method string

// The methods. None is that of a change that needs no request.
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
	// Body is what to send; Apply is sent with force, since who loses fields is read
	// from the answer to the dry run (Takeovers) and not from the server's conflicts.
	Body []byte
	// Live and Want are what was read and what the answer is expected to be:
	// Want is the normalised After without managedFields, resourceVersion and
	// generation.
	Live, Want *unstructured.Unstructured
	// Changed holds the fields that are added or get another value, Removed those
	// that go. List elements are named by key where the schema is known, by index
	// elsewhere.
	Changed, Removed *fieldpath.Set

	manager, subresource string
	was                  map[string]any // Live, normalised as Want is
}

// ReasonKind is why a change is not written by server-side apply.
type ReasonKind string

// The reasons, in the order in which they are looked for.
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
	// Ownership: the manager of the request is not to own the fields afterwards.
	Ownership ReasonKind = "apply would keep the fields"
)

// Reason is why a change is not written by server-side apply. The zero Reason is none.
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
