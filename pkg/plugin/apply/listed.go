package apply

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"io"
	"slices"
	"sync"

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
	size int
	pack *flate.Writer
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
	var packed bytes.Buffer
	if l.pack == nil {
		l.pack, _ = flate.NewWriter(&packed, flate.BestSpeed) // a level that there is
	} else {
		l.pack.Reset(&packed)
	}
	if _, err := l.pack.Write(text); err != nil || l.pack.Close() != nil {
		return
	}
	t.listed = bytes.Clone(packed.Bytes())
	l.size += len(t.listed)
}

// mayUse reports whether a request that is made of the object as it was listed is refused where the object has
// changed since, and is for the same version. A change of the status alone makes no request of the object itself.
func (t *Task) mayUse(u *unstructured.Unstructured) bool {
	return u != nil && t.Key.Subresource == "" && t.Pending == nil && !slices.Contains(t.Endpoints, request.StatusSubresource) &&
		u.GroupVersionKind() == t.Key.GroupVersionKind() && u.GetUID() != "" && u.GetResourceVersion() != ""
}

// unpackers are used again: each has a window of 32 KiB.
//
//nolint:gochecknoglobals // what one has read before does not matter
var unpackers = sync.Pool{New: func() any { return flate.NewReader(bytes.NewReader(nil)) }}

// takeListed returns the object that was kept for a task, which keeps it no longer; nil if there is none.
func (t *Task) takeListed() *unstructured.Unstructured {
	packed := t.listed
	t.listed = nil
	if packed == nil {
		return nil
	}
	unpack := unpackers.Get().(io.ReadCloser) // it is what New makes
	defer unpackers.Put(unpack)
	if unpack.(flate.Resetter).Reset(bytes.NewReader(packed), nil) != nil {
		return nil
	}
	text, err := io.ReadAll(unpack)
	if err != nil {
		return nil
	}
	var object map[string]any
	if utiljson.Unmarshal(text, &object) != nil {
		return nil
	}
	return &unstructured.Unstructured{Object: object}
}
