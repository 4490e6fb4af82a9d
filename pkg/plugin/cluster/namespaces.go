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

// namespaces caches the server's Namespaces for a run.
type namespaces struct {
	known  engine.Memo                                           // by name; all of them by their kind
	listed atomic.Pointer[map[string]*unstructured.Unstructured] // all, once they are known
}

// allNamespaces lists the Namespaces, once. With an error it returns those read so far.
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

// Renew empties the cache of Namespaces, for a run that reuses the client of another.
func (c *Client) Renew() { c.namespaces.Store(&namespaces{}) }

// Namespace reads a Namespace by its name, once in a run, without the permission to list them.
func (c *Client) Namespace(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	found, err := c.namespaces.Load().known.Do(ctx, name, func(ctx context.Context) (any, error) {
		return c.Get(ctx, engine.ObjectKey{GroupKind: namespaceKind, Version: "v1", Name: name})
	})
	u, _ := found.(*unstructured.Unstructured)
	return u, err
}

// inShard replaces a listing of all namespaces by one for each namespace of a shard. Without the permission
// to list namespaces the listing stays, and its caller drops the objects of other shards.
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

// RunReader reads the objects that policies read or change. Unlike the Client, it does not read a Namespace
// twice.
type RunReader struct {
	*Client
	Shard engine.Shard // lists are limited to its namespaces
}

// Reader returns the reader of a run.
func (c *Client) Reader() RunReader { return RunReader{Client: c} }

// List lists as Client.List does, only in the namespaces of the shard.
func (r RunReader) List(ctx context.Context,
	s engine.Selection,
) iter.Seq2[*unstructured.Unstructured, error] {
	return r.listIn(ctx, s, r.Shard)
}

// Get reads an object as Client.Get does, or returns a cached Namespace.
func (r RunReader) Get(ctx context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error) {
	if key.GroupKind != namespaceKind || key.Subresource != "" {
		return r.Client.Get(ctx, key)
	}
	if all := r.namespaces.Load().listed.Load(); all != nil && (*all)[key.Name] != nil {
		return (*all)[key.Name], nil
	}
	return r.Namespace(ctx, key.Name)
}

// readNamespaces reads the named Namespaces of the scope, without the permission to list them, or all. A run
// goes on without Namespaces that the user may not read.
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
		// once, for all sources of a run
		if _, warned := s.client.warned.LoadOrStore(err.Error(), true); !warned {
			s.options.Warn(err)
		}
	}
	return found
}
