package cluster

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

//nolint:gochecknoglobals // an immutable value
var namespaceKind = schema.GroupKind{Kind: "Namespace"}

// namespaces are those of the server, listed and read once in a run.
type namespaces struct {
	known  engine.Memo                                           // by name, and all by their kind
	listed atomic.Pointer[map[string]*unstructured.Unstructured] // all, once they are known
}

// allNamespaces lists the Namespaces, once. With an error, there are those that were read before it.
func (c *Client) allNamespaces(ctx context.Context) (map[string]*unstructured.Unstructured, error) {
	n := c.namespaces.Load()
	found, err := n.known.Do(ctx, namespaceKind, func(ctx context.Context) (any, error) {
		all := map[string]*unstructured.Unstructured{}
		for u, err := range c.List(ctx, engine.Selection{Version: "v1", Kind: namespaceKind.Kind}) {
			if err != nil {
				return all, err
			}
			all[u.GetName()] = u
		}
		n.listed.Store(&all)
		return all, nil
	})
	all, _ := found.(map[string]*unstructured.Unstructured)
	return all, err
}

// Renew forgets the Namespaces that were read, for a run that begins with the client of another one.
func (c *Client) Renew() { c.namespaces.Store(&namespaces{}) }

// Namespace reads a Namespace by its name, once in a run: that takes no right to list them.
func (c *Client) Namespace(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	found, err := c.namespaces.Load().known.Do(ctx, name, func(ctx context.Context) (any, error) {
		return c.Get(ctx, engine.ObjectKey{GroupKind: namespaceKind, Version: "v1", Name: name})
	})
	u, _ := found.(*unstructured.Unstructured)
	return u, err
}

// inShard turns a listing of all namespaces into one for each namespace of a shard that it may be about.
// Without the right to list namespaces it is left: what is in other shards is dropped by who lists.
func (c *Client) inShard(ctx context.Context, r *resource, shard engine.Shard, queries []query,
	mayBeIn func(namespace string) bool,
) []query {
	if shard.Whole() || !r.namespaced() {
		return queries
	}
	var out []query
	for _, q := range queries {
		namespaces := []string{q.namespace}
		if q.namespace == "" {
			all, err := c.allNamespaces(ctx)
			if err != nil {
				return queries
			}
			namespaces = slices.Sorted(maps.Keys(all))
		}
		for _, q.namespace = range namespaces {
			if shard.Has(q.namespace, "") && mayBeIn(q.namespace) {
				out = append(out, q)
			}
		}
	}
	return out
}

// RunReader is what policies read from, or what a run may change. Unlike the Client, it knows the Namespaces
// that the run has read without another request.
type RunReader struct {
	*Client
	Shard engine.Shard // in whose namespaces it lists
}

// Reader returns the reader of a run.
func (c *Client) Reader() RunReader { return RunReader{Client: c} }

// List lists as Client.List does, in the namespaces of the shard alone.
func (r RunReader) List(ctx context.Context,
	s engine.Selection,
) iter.Seq2[*unstructured.Unstructured, error] {
	return r.listIn(ctx, s, r.Shard)
}

// Get reads an object as Client.Get does, or returns a Namespace that is known.
func (r RunReader) Get(ctx context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error) {
	if key.GroupKind != namespaceKind || key.Subresource != "" {
		return r.Client.Get(ctx, key)
	}
	if all := r.namespaces.Load().listed.Load(); all != nil && (*all)[key.Name] != nil {
		return (*all)[key.Name], nil
	}
	return r.Namespace(ctx, key.Name)
}

// readNamespaces reads the scope's Namespaces: those that are named, which takes no right to list them, or
// all. A user who may not read them still gets a run, in which policies do not know them.
func (s *source) readNamespaces(ctx context.Context) map[string]*unstructured.Unstructured {
	names := s.scope.Listed()
	if len(s.refused) > 0 {
		names = s.options.Fallback
	}
	found := map[string]*unstructured.Unstructured{}
	var err error
	if len(names) == 0 {
		found, err = s.client.allNamespaces(ctx)
	}
	for _, name := range names {
		u, failed := s.client.Namespace(ctx, name)
		if failed != nil {
			err = failed
			continue
		}
		found[name] = u
	}
	if err != nil {
		err = fmt.Errorf("namespaces, their labels included, are unknown to the policies: %w", err)
		// however many sources of a run find the same
		if _, warned := s.client.warned.LoadOrStore(err.Error(), true); !warned {
			s.options.Warn(err)
		}
	}
	return found
}
