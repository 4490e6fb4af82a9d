package apply

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
)

// maxListed is how many bytes the objects of one run take that are held until they are verified.
const maxListed = 256 << 20

// hold keeps an object as a run has listed it, on disk, so that to verify the change of its task it need not be read again.
// What does not fit is not kept.
func (x *Executor) hold(t *Task, u *unstructured.Unstructured) file.Place {
	if !t.mayUse(u) || x.listed >= maxListed {
		return file.Place{}
	}
	text, err := json.Marshal(u.Object)
	if err != nil {
		return file.Place{} // it is read again
	}
	place, onDisk := x.store(text)
	if !onDisk {
		x.scratch.Free(place)
		return file.Place{}
	}
	x.listed += len(text)
	return place
}

// mayUse reports whether a request that is made of the object as it was listed is refused where the object has
// changed since, and is for the same version. A change of the status alone makes no request of the object itself.
func (t *Task) mayUse(u *unstructured.Unstructured) bool {
	return u != nil && t.Key.Subresource == "" && t.Pending == nil && !slices.Contains(t.Endpoints, request.StatusSubresource) &&
		u.GroupVersionKind() == t.Key.GroupVersionKind() && u.GetUID() != "" && u.GetResourceVersion() != ""
}

// take returns the object that is held for a task, which holds it no longer; nil if there is none.
func (x *Executor) take(q *queued) *unstructured.Unstructured {
	place := q.listed
	q.listed = file.Place{}
	if place == (file.Place{}) {
		return nil
	}
	text, err := x.scratch.Read(place)
	if err != nil {
		return nil
	}
	var object map[string]any
	if utiljson.Unmarshal(text, &object) != nil {
		return nil
	}
	return &unstructured.Unstructured{Object: object}
}
