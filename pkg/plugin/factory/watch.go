package factory

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/dialects"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/evaluate"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/permission"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/watch"
)

// Followers follow the objects that the rules of a run match, the targets that they change instead, and the
// parameters of its policies, which are a part of them.
type Followers struct{ Objects, Targets, Params []*watch.Follower }

// Followers returns the followers of a run, and reports unknown kinds.
func (f *Factory) Followers(ctx context.Context, o *evaluate.Options,
	r *evaluate.Run,
) (out Followers, unknown []error, err error) {
	everywhere := engine.Scope{ClusterScoped: true}
	scope := everywhere
	own, triggers := r.Selections()
	if len(triggers) == 0 {
		scope = *o.Scope
	}
	watched, unknown, err := f.Client.Watches(ctx, scope, slices.Concat(own, triggers))
	if err != nil {
		return out, nil, err
	}
	var old, targets []engine.Selection
	for _, d := range r.Descriptions() {
		if r.AsksForOld(d.Rule) {
			old = append(old, d.Matches...)
		} else {
			targets = append(targets, d.Targets...)
		}
	}
	keeps, err := engine.NewObjectFilter(old, everywhere)
	if err != nil {
		return out, nil, err
	}
	out.Objects = f.followers(watched, o.Scope)
	for _, follower := range out.Objects {
		if kind, ok := keeps.ForKind(follower.Mapping()); ok {
			follower.Keeps = func(u *unstructured.Unstructured) bool { return kind.Matches(u) }
		}
	}
	watched, more, err := f.Client.Watches(ctx, *o.Scope, targets)
	if err != nil {
		return out, nil, err
	}
	out.Targets, unknown = f.followers(watched, o.Scope), slices.Concat(unknown, more)
	var read []engine.Selection
	for _, d := range r.Descriptions() {
		for _, s := range d.Params {
			at := []string{s.Namespace}
			if s.Namespace == engine.Computed { // the object's
				if at = o.Scope.Listed(); len(at) == 0 {
					at = []string{""}
				}
			}
			for _, s.Namespace = range at {
				read = append(read, s)
			}
		}
	}
	watched, more, err = f.Client.Watches(ctx, everywhere, read)
	out.Params = f.followers(watched, o.Scope)
	return out, slices.Concat(unknown, more), err
}

// followers follow resources, or their parts if the user may not list all of a resource.
func (f *Factory) followers(watched []*cluster.Watched, scope *engine.Scope) []*watch.Follower {
	var out []*watch.Follower
	for _, w := range watched {
		follower := &watch.Follower{Resource: w}
		for _, part := range w.In(scope.Listed()) {
			follower.Parts = append(follower.Parts, part)
		}
		out = append(out, follower)
	}
	return out
}

// PolicyFollowers returns followers of the installed policies and inputs that the run uses, and of objects
// that define kinds.
func (f *Factory) PolicyFollowers(ctx context.Context) ([]*watch.Follower, error) {
	accepts := besidePolicies(dialects.All())
	watched, err := f.Client.PolicyWatches(ctx, func(gk schema.GroupKind) engine.Role {
		if permission.Defines(gk) {
			return engine.Input
		}
		if role := accepts(gk); role == engine.Input || f.Policies.FromCluster {
			return role
		}
		return engine.Foreign
	})
	if err != nil {
		return nil, err
	}
	var out []*watch.Follower
	for _, w := range watched {
		out = append(out, &watch.Follower{Resource: w})
	}
	return out, nil
}

// Files returns the files and directories of policies and of what they read besides a cluster. URLs are read
// once.
func (f *Factory) Files() []string {
	var out []string
	for _, path := range slices.Concat(f.Policies.Paths, f.Objects.World, []string{f.Context.Values}) {
		if path != "" && !strings.Contains(path, "://") {
			out = append(out, path)
		}
	}
	return out
}

// Events returns the sources of a run over events, and its world, which is the cluster as it is now. Every
// object triggers the changes of targets.
func (f *Factory) Events(o *evaluate.Options,
	events []*watch.Event,
) (objects *watch.Source, triggers engine.Source, w *engine.World) {
	f.Client.Renew()
	world := *o.World
	w = &world
	w.Now, w.Seed, w.Memo = time.Now(), rand.Uint64(), &engine.Memo{}
	everywhere := engine.Scope{ClusterScoped: true, Request: o.Request}
	live := f.source(everywhere, o.Scope.Listed())
	if f.overlay != nil {
		live = f.overlay.Source(live)
	}
	objects = &watch.Source{Events: events, Scope: *o.Scope, World: w}
	if triggers = live; !events[0].Target {
		triggers = &watch.Source{Events: events, Scope: everywhere, World: w, Live: live}
	}
	return objects, triggers, w
}
