package apply

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/packed"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// maxListed is how many bytes the objects of one run take that are held until they are verified.
const maxListed = 32 << 20

// queue has the tasks of a run, and the objects that they are about as these were listed. It is not safe for concurrent use,
// but for take.
type queue struct {
	tasks       []*queued
	triggeredBy map[engine.ObjectKey][]*queued // where there are any: whose changes an object triggers, by Named
	texts       packed.Dictionary              // of the objects
	size        int                            // of the objects
}

// queued is a task of a run that waits for its turn.
type queued struct {
	*Task

	listed   packed.Value // the object, until it is verified
	wave     int          // in which it is written
	managed  bool         // something else manages the object, as the user was shown
	missed   bool         // its change was not made, and should have been
	reported bool
}

// add adds a task, and the object as the run has listed it, so that to verify the change it need not be read again. What does
// not fit is not held.
func (q *queue) add(t *Task, listed *unstructured.Unstructured) {
	q.tasks = append(q.tasks, q.hold(t, listed))
}

// hold returns a task with the object that it is about.
func (q *queue) hold(t *Task, listed *unstructured.Unstructured) *queued {
	out := &queued{Task: t}
	if t.mayUse(listed) && q.size < maxListed {
		out.listed, _ = q.texts.Pack(listed.Object)
		q.size += len(out.listed)
	}
	return out
}

// take returns the object that is held for a task, which holds it no longer; nil if there is none.
func (q *queue) take(t *queued) *unstructured.Unstructured {
	listed := t.listed
	if t.listed = ""; listed == "" {
		return nil
	}
	object, _ := q.texts.Unpack(listed).(map[string]any)
	return &unstructured.Unstructured{Object: object}
}

// mayUse reports whether a request that is made of the object as it was listed is refused where the object has
// changed since, and is for the same version. A change of the status alone makes no request of the object itself.
func (t *Task) mayUse(u *unstructured.Unstructured) bool {
	return u != nil && t.Key.Subresource == "" && t.Pending == nil && !slices.Contains(t.Endpoints, request.StatusSubresource) &&
		u.GroupVersionKind() == t.Key.GroupVersionKind() && u.GetUID() != "" && u.GetResourceVersion() != ""
}

// isShownManaged reports whether the change was shown with the impact that something else manages the object.
func (t *Task) isShownManaged() bool {
	return slices.ContainsFunc(t.Entry.Impacts, func(i plan.Impact) bool { return i.Code == engine.ImpactManaged })
}
