package cluster

import (
	"context"
	"fmt"
	"io"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientopenapi "k8s.io/client-go/openapi"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/openapi"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// schemaCache caches the OpenAPI documents that were requested: one per group
// version, read when it is first needed and by one goroutine only.
type schemaCache struct {
	mu        sync.Mutex
	published map[string]clientopenapi.GroupVersionWithContext // nil until they are read
	documents map[schema.GroupVersion]*cachedDocument
	warned    sync.Once
}

// maxSchemaFailures is how often a document is asked for in vain before its error is kept: what
// can do without a schema asks again for each object. A caller that repeats its reads is not kept
// from it.
const maxSchemaFailures = 3

type cachedDocument struct {
	mu       sync.Mutex
	read     bool
	failures int
	failed   error             // the last failure
	document *openapi.Document // nil where the server publishes none
}

// Schema returns how the server merges objects of a kind: the zero value if it publishes no
// schema for the kind.
func (c *Client) Schema(ctx context.Context, gvk schema.GroupVersionKind) (engine.Schema, error) {
	return c.schema(ctx, gvk, false)
}

// Types is the part of Schema that a Writer needs; refresh reads it again.
func (c *Client) Types(ctx context.Context, gvk schema.GroupVersionKind, refresh bool) (managedfields.TypeConverter, error) {
	s, err := c.schema(ctx, gvk, refresh)
	return s.Types, err
}

func (c *Client) schema(ctx context.Context, gvk schema.GroupVersionKind, refresh bool) (engine.Schema, error) {
	cached := c.schemas.entry(gvk.GroupVersion())
	cached.mu.Lock()
	defer cached.mu.Unlock()
	if !cached.read || refresh {
		if cached.failures >= maxSchemaFailures {
			return engine.Schema{}, cached.failed
		}
		var document *openapi.Document
		err := retryRead(ctx, func() (err error) {
			document, err = c.openAPI(ctx, gvk.GroupVersion(), refresh)
			return transport.Cause(err)
		})
		if err != nil {
			if cached.failures++; ctx.Value(noRetry{}) != nil {
				cached.failures = 0
			} else if transport.IsLimit(err) {
				cached.failures = maxSchemaFailures
			}
			cached.failed = fmt.Errorf("schema of %s %s: %w", gvk.GroupVersion(), gvk.Kind, err)
			if ctx.Value(noRetry{}) == nil && ctx.Err() == nil {
				c.schemas.warnOnce(c.warnings, cached.failed)
			}
			return engine.Schema{}, cached.failed
		}
		cached.document, cached.read, cached.failures = document, true, 0
	}
	if cached.document == nil {
		return engine.Schema{}, nil
	}
	return cached.document.Schema(gvk), nil
}

// warnOnce reports the first failure: where there is no schema, what would be merged or compared by it
// is done as for kinds without one, and nothing else would say so.
func (s *schemaCache) warnOnce(out io.Writer, err error) {
	if out == nil {
		return
	}
	s.warned.Do(func() {
		fmt.Fprintf(out, "warning: %v; without its schema, elements of lists are compared by name or place, and quantities as text\n", err)
	})
}

func (s *schemaCache) entry(gv schema.GroupVersion) *cachedDocument {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.documents == nil {
		s.documents = map[schema.GroupVersion]*cachedDocument{}
	}
	if s.documents[gv] == nil {
		s.documents[gv] = &cachedDocument{}
	}
	return s.documents[gv]
}

// openAPI reads a document through discovery, whose HTTP cache on disk saves
// the next run the transfer. It returns nil if the server has no OpenAPI v3 at all.
func (c *Client) openAPI(ctx context.Context, gv schema.GroupVersion, refresh bool) (*openapi.Document, error) {
	published, err := c.publishedSchemas(ctx, refresh)
	if err != nil {
		return nil, err
	}
	name := "apis/" + gv.String()
	if gv.Group == "" {
		name = "api/" + gv.Version
	}
	if published[name] == nil {
		return nil, nil
	}
	body, err := published[name].SchemaWithContext(ctx, runtime.ContentTypeJSON)
	if err != nil {
		return nil, err
	}
	return openapi.Parse(body)
}

// publishedSchemas are the documents that the server has, by their names.
func (c *Client) publishedSchemas(ctx context.Context, refresh bool) (map[string]clientopenapi.GroupVersionWithContext, error) {
	c.schemas.mu.Lock()
	defer c.schemas.mu.Unlock()
	if c.schemas.published != nil && !refresh {
		return c.schemas.published, nil
	}
	published, err := c.api.OpenAPIV3WithContext(ctx).PathsWithContext(ctx)
	if apierrors.IsNotFound(err) {
		published, err = map[string]clientopenapi.GroupVersionWithContext{}, nil
	}
	if err == nil {
		c.schemas.published = published
	}
	return published, err
}
