package apply

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
)

// maxListed is how many bytes the objects of one run take that are kept until they are verified.
const maxListed = 24 << 20

// listed keeps objects as a run has listed them, packed, so that to verify their changes they need not be read again.
// What does not fit is not kept. The zero value keeps nothing yet.
type listed struct {
	packer

	size int
}

// keep keeps the object of a task that was made for a change.
func (l *listed) keep(t *Task, c *engine.Change) {
	u := c.Target.Object
	if !t.mayUse(u) || l.size >= maxListed {
		return
	}
	text, err := json.Marshal(u.Object)
	if err != nil {
		return // it is read again
	}
	t.listed = l.pack(text)
	l.size += len(t.listed)
}

// mayUse reports whether a request that is made of the object as it was listed is refused where the object has
// changed since, and is for the same version. A change of the status alone makes no request of the object itself.
func (t *Task) mayUse(u *unstructured.Unstructured) bool {
	return u != nil && t.Key.Subresource == "" && t.Pending == nil && !slices.Contains(t.Endpoints, request.StatusSubresource) &&
		u.GroupVersionKind() == t.Key.GroupVersionKind() && u.GetUID() != "" && u.GetResourceVersion() != ""
}

// take returns the object that was kept for a task, which keeps it no longer; nil if there is none.
func (l *listed) take(t *Task) *unstructured.Unstructured {
	packed := t.listed
	t.listed = nil
	if packed == nil {
		return nil
	}
	text, err := l.unpack(packed)
	if err != nil {
		return nil
	}
	var object map[string]any
	if utiljson.Unmarshal(text, &object) != nil {
		return nil
	}
	return &unstructured.Unstructured{Object: object}
}
