package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Cluster is the cluster under an Overlay.
type Cluster interface {
	engine.Reader
	engine.RawReader
}

// Overlay serves the objects of a snapshot over a cluster's, as if applied to it: of two objects with one
// name it serves the snapshot's. A listing has both, and the cluster's refusal to list is final.
type Overlay struct {
	objects *Snapshot
	cluster Cluster
}

var _ Cluster = (*Overlay)(nil)

// Over returns the objects over a cluster's.
func (s *Snapshot) Over(c Cluster) *Overlay { return &Overlay{objects: s, cluster: c} }

// Get implements engine.Reader.
func (o *Overlay) Get(ctx context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error) {
	if !o.objects.holds(key) {
		return o.cluster.Get(ctx, key)
	}
	return o.objects.Get(ctx, key)
}

// Schema implements engine.Reader. The cluster knows its kinds better than a file does.
func (o *Overlay) Schema(ctx context.Context, gvk schema.GroupVersionKind) (engine.Schema, error) {
	if known, err := o.cluster.Schema(ctx, gvk); err != nil || known.Types != nil {
		return known, err
	}
	if _, defined := o.objects.schemas.custom[gvk]; !defined {
		return engine.Schema{}, nil
	}
	return o.objects.schemas.schema(gvk)
}

// List implements engine.Reader.
func (o *Overlay) List(
	ctx context.Context, sel engine.Selection,
) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		var mine []*unstructured.Unstructured
		for u, err := range o.objects.List(ctx, sel) {
			if err != nil {
				yield(nil, err)
				return
			}
			mine = append(mine, u)
		}
		for u, err := range o.cluster.List(ctx, sel) {
			if notServed(err) &&
				slices.ContainsFunc(o.objects.entries, func(e *entry) bool { return sel.MatchesKind(e.key) }) {
				break
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if o.objects.holds(engine.KeyOf(u)) {
				continue
			}
			for len(mine) > 0 && o.before(mine[0], u) {
				if !yield(mine[0], nil) {
					return
				}
				mine = mine[1:]
			}
			if !yield(u, nil) {
				return
			}
		}
		for _, u := range mine {
			if !yield(u, nil) {
				return
			}
		}
	}
}

// notServed reports whether the cluster lacks the requested kind.
func notServed(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }

// before reports whether two objects are in order of group, resource, namespace and name.
func (o *Overlay) before(a, b *unstructured.Unstructured) bool {
	x, y := a.GroupVersionKind().GroupKind(), b.GroupVersionKind().GroupKind()
	if x == y {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName())) < 0
	}
	mine, err := o.objects.mapper.RESTMapping(x)
	if err != nil {
		return false
	}
	theirs, err := o.objects.mapper.RESTMapping(y)
	return err == nil &&
		cmp.Or(cmp.Compare(x.Group, y.Group), cmp.Compare(mine.Resource.Resource, theirs.Resource.Resource)) < 0
}

// Raw implements engine.RawReader.
func (o *Overlay) Raw(ctx context.Context, method, target string, body []byte) ([]byte, error) {
	p, err := engine.ParseAPIPath(target)
	if err != nil || method != "GET" || p.Refusal(method) != "" || !o.has(p) {
		return o.cluster.Raw(ctx, method, target, body)
	}
	if p.Name != "" {
		return o.objects.Raw(ctx, method, target, nil)
	}
	mapping, err := o.objects.mappingOf(p)
	if err != nil {
		return nil, err
	}
	return collection(ctx, o, mapping, p)
}

// has reports whether a path means objects of the snapshot: the named one, or any of the listed resource.
func (o *Overlay) has(p engine.APIPath) bool {
	return p.Resource != "" && slices.ContainsFunc(o.objects.entries, func(e *entry) bool {
		return p.Name == "" && e.isOf(p) || e.isOf(p) && e.key.Name == p.Name && e.key.Namespace == p.Namespace
	})
}

// isOf reports whether the object is of the resource of a path.
func (e *entry) isOf(p engine.APIPath) bool {
	return e.mapping.Resource.Group == p.Group && e.mapping.Resource.Resource == p.Resource
}

// Existing reads only the objects of the cluster, which a run may change.
func (o *Overlay) Existing() engine.Reader { return existing{o.cluster, o.objects} }

type existing struct {
	engine.Reader
	objects *Snapshot
}

// Get implements engine.Reader. The error says if only a file has the object.
func (r existing) Get(ctx context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error) {
	u, err := r.Reader.Get(ctx, key)
	if r.objects.holds(key) && notServed(err) {
		err = fmt.Errorf("%w: only %s has it, and files are not changed", err, r.objects.Document(key).Origin)
	}
	return u, err
}

// Source returns the objects of a source, each with the snapshot's Namespace, if any.
func (o *Overlay) Source(s engine.Source) engine.Source {
	return engine.Altered(s, func(_ context.Context, t engine.Target) engine.Target {
		t.Namespace = cmp.Or(o.objects.namespace(t.Key.Namespace), t.Namespace)
		return t
	})
}
