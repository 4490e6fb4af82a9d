package undo

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

// freshServer reads no state of an object that is older than one that was recorded,
// read or written before.
// A state from before a write would look as if it had been reverted already; no guard
// catches that, because nothing is sent then. API servers do not serve such states,
// but a cache in front of them may.
type freshServer struct {
	apply.Server
	mu    sync.Mutex
	least map[engine.ObjectKey]string // resourceVersions, by names
}

func newFreshServer(s apply.Server) *freshServer {
	return &freshServer{Server: s, least: map[engine.ObjectKey]string{}}
}

func nameOf(key engine.ObjectKey) engine.ObjectKey {
	key.Subresource = ""
	return key.Named()
}

// know records a state that the server has stored.
func (f *freshServer) know(key engine.ObjectKey, version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := nameOf(key)
	if order, err := resourceversion.CompareResourceVersion(version, cmp.Or(f.least[name], version)); err == nil && order >= 0 {
		f.least[name] = version
	}
}

// isStale reports whether a state is known to come before one that was recorded. Versions that do not compare are never known to.
func (f *freshServer) isStale(key engine.ObjectKey, live *unstructured.Unstructured) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	order, err := resourceversion.CompareResourceVersion(live.GetResourceVersion(), f.least[nameOf(key)])
	return err == nil && order < 0
}

// Get reads an object.
func (f *freshServer) Get(ctx context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error) {
	var live *unstructured.Unstructured
	again := wait.Backoff{Duration: 20 * time.Millisecond, Steps: 10}
	var failed error // of reading; it may be a timeout of its own
	err := wait.ExponentialBackoffWithContext(ctx, again, func(ctx context.Context) (fresh bool, err error) {
		live, failed = f.Server.Get(ctx, key)
		return failed == nil && !f.isStale(key, live), failed
	})
	switch {
	case ctx.Err() != nil:
		return nil, apply.ErrInterrupted
	case failed != nil:
		return nil, failed
	case wait.Interrupted(err):
		return nil, fmt.Errorf("%s: the server answers with a state from before the run", key)
	case err != nil:
		return nil, err
	}
	f.know(key, live.GetResourceVersion())
	return live, nil
}

// Patch sends a patch.
func (f *freshServer) Patch(ctx context.Context, key engine.ObjectKey, p cluster.Patch) (*unstructured.Unstructured, error) {
	answer, err := f.Server.Patch(ctx, key, p)
	if err == nil && !p.DryRun {
		f.know(key, answer.GetResourceVersion())
	}
	return answer, err
}
