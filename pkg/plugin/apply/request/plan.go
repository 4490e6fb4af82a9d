package request

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// maxOperations is the API server's limit for one JSON patch; more are a 413.
const maxOperations = 10_000

// Plan returns the request that turns Live into After: server-side apply if it is exact
// and leaves nothing that other owners would conflict with, otherwise a guarded JSON
// patch.
//
// It is an error if the change would make the object another one, if the live object lacks the fields that guard a
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
	was, err := canonical(in.Live.Object)
	if err != nil {
		return r, fmt.Errorf("live object: %w", err)
	}
	want, err := canonical(in.After.Object)
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

// jsonPatch finishes a request as a JSON patch. The first operation is the
// guard: a stale resourceVersion is answered with 409, whereas a failing `test`
// would be a 422 without a reason.
func (r Request) jsonPatch(why Reason) (Request, error) {
	edits, ok := diff.EditsWithin(r.was, r.Want.Object, maxOperations-1)
	if !ok {
		return r, fmt.Errorf("the change needs %d JSON patch operations, the server takes %d", len(edits)+1, maxOperations)
	}
	guard := diff.Edit{
		Op: diff.OpReplace, Path: fieldpath.MakePathOrDie("metadata", "resourceVersion"), Value: r.Live.GetResourceVersion(),
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
	for field, value := range map[string]string{"resourceVersion": live.GetResourceVersion(), "uid": string(live.GetUID())} {
		if value == "" {
			return fmt.Errorf("the live object has no metadata.%s, so a write could not be guarded against other writers", field)
		}
	}
	return nil
}
