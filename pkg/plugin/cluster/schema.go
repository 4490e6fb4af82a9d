package cluster

import (
	"cmp"
	"context"
	"fmt"
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

// schemaCache caches OpenAPI documents, one per group version, read when first needed.
type schemaCache struct {
	mu        sync.Mutex
	published map[string]clientopenapi.GroupVersionWithContext // nil until they are read
	documents map[schema.GroupVersion]cachedDocument
	warned    bool
}

type cachedDocument struct {
	document *openapi.Document // nil where the server publishes none
	failures int               // since the last success
	failed   error             // the last failure
}

// maxSchemaFailures is the number of failures after which the error of a document is cached: callers that can
// do without a schema ask again for each object. Callers that repeat their reads are not affected.
const maxSchemaFailures = 3

// Schema returns the merge schema of a kind; the zero value if the server publishes none.
func (c *Client) Schema(ctx context.Context, gvk schema.GroupVersionKind) (engine.Schema, error) {
	return c.schema(ctx, gvk, false)
}

// Types is the part of Schema that a Writer needs; refresh reads it again.
func (c *Client) Types(ctx context.Context, gvk schema.GroupVersionKind,
	refresh bool,
) (managedfields.TypeConverter, error) {
	s, err := c.schema(ctx, gvk, refresh)
	return s.Types, err
}

func (c *Client) schema(ctx context.Context, gvk schema.GroupVersionKind,
	refresh bool,
) (engine.Schema, error) {
	s := &c.schemas
	s.mu.Lock()
	defer s.mu.Unlock()
	cached, known := s.documents[gvk.GroupVersion()]
	repeated := c.patience != nil
	if !known || refresh || cached.failures > 0 && (repeated || cached.failures < maxSchemaFailures) {
		err := c.retryRead(ctx, func() (err error) {
			cached.document, err = c.openAPI(ctx, gvk.GroupVersion(), refresh)
			return transport.Cause(err)
		})
		if ctx.Err() != nil {
			return engine.Schema{}, cmp.Or(err, ctx.Err())
		}
		if cached.failures++; err == nil {
			cached.failures, cached.failed = 0, nil
		} else if cached.failed = fmt.Errorf("schema of %s %s: %w", gvk.GroupVersion(), gvk.Kind, err); !repeated {
			c.warnOfSchema(cached.failed)
		}
		if s.documents == nil {
			s.documents = map[schema.GroupVersion]cachedDocument{}
		}
		s.documents[gvk.GroupVersion()] = cached
	}
	if cached.failures > 0 || cached.document == nil {
		return engine.Schema{}, cached.failed
	}
	return cached.document.Schema(gvk), nil
}

// warnOfSchema reports the first failure: without the schema, objects are merged and compared as for kinds
// without one, and nothing else would say so.
func (c *Client) warnOfSchema(err error) {
	if c.warnings != nil && !c.schemas.warned {
		c.schemas.warned = true
		fmt.Fprintf(c.warnings, "warning: %v; without its schema, elements of lists are compared by name or place, and quantities as text\n", err)
	}
}

// openAPI reads a document through discovery, whose HTTP cache on disk saves the next run the transfer. It
// returns nil if the server has no OpenAPI v3.
func (c *Client) openAPI(ctx context.Context, gv schema.GroupVersion,
	refresh bool,
) (*openapi.Document, error) {
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

// publishedSchemas returns the server's documents by their names.
func (c *Client) publishedSchemas(ctx context.Context,
	refresh bool,
) (map[string]clientopenapi.GroupVersionWithContext, error) {
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
