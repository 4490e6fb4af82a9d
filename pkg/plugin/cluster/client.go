package cluster

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Defaults of Options. client-go's own 5 requests a second would make a run
// over a large cluster take minutes.
const (
	defaultQPS       = 50
	defaultBurst     = 300
	defaultChunkSize = 500
)

// Options tune a Client; the zero value of a field stands for its default.
type Options struct {
	// QPS and Burst limit the requests; a negative QPS is no limit. Without both, the server sets the pace if it
	// has API Priority and Fairness.
	QPS   float32
	Burst int
	// ReadOnly makes writing impossible; see RefusedError.
	ReadOnly bool
	// But are resources of which a client that is ReadOnly may patch and delete single objects.
	But []schema.GroupResource
	// ChunkSize is how many objects one request of a listing asks for; negative for all of them.
	ChunkSize int64
	// Warnings takes the server's warnings, each text once, and a warning of the first schema that
	// cannot be read; nil drops them.
	Warnings io.Writer
	// Waiting, if set, is called with the times from and to which a request waits for QPS and Burst, or
	// because the server asks for it.
	Waiting func(from, to time.Time)
}

// Client talks to one API server. It is safe for concurrent use.
type Client struct {
	rest      rest.Interface
	api       *discovery.DiscoveryClient
	discovery discovery.CachedDiscoveryInterface // keeps what was read, as long as the client is there
	mapper    meta.RESTMapper
	chunkSize int64
	info      Info

	catalogMu  sync.Mutex
	catalog    *catalog
	namespaces namespaces
	schemas    schemaCache
	warnings   io.Writer
	warned     sync.Map // the warnings of sources
}

var _ engine.Reader = (*Client)(nil)

// New makes a client for the server that the getter's flags and kubeconfig
// name. It sends no request.
func New(getter genericclioptions.RESTClientGetter, o Options) (*Client, error) {
	config, err := getter.ToRESTConfig()
	if err != nil {
		return nil, unquoted(err)
	}
	client, err := newRESTClient(config, o)
	if err != nil {
		return nil, unquoted(fmt.Errorf("connect to %s: %w", config.Host, err))
	}
	c := &Client{
		rest: client, chunkSize: cmp.Or(o.ChunkSize, defaultChunkSize),
		info: infoOf(getter, config), warnings: o.Warnings,
	}
	cached, err := getter.ToDiscoveryClient() // of which nothing but the cache of HTTP is used, which asks whether an answer still holds
	if err != nil {
		return nil, err
	}
	c.api = discovery.NewDiscoveryClient(cached.RESTClient())
	c.discovery = memory.NewMemCacheClient(patientDiscovery{c.api})
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(c.discovery), c.discovery, nil)
	c.mapper = &knownMapper{RESTMapper: mapper, CategoryExpander: restmapper.NewDiscoveryCategoryExpander(c.discovery)}
	return c, nil
}

// Mapper maps kinds to resources as the server serves them. It is a restmapper.CategoryExpander, too.
func (c *Client) Mapper() meta.RESTMapper { return c.mapper }

func newRESTClient(config *rest.Config, o Options) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion = &schema.GroupVersion{}
	pace(config, o)
	config.WarningHandler, config.WarningHandlerWithContext = nil, rest.NoWarnings{}
	if o.Warnings != nil {
		config.WarningHandlerWithContext = warner{rest.NewWarningWriter(o.Warnings, rest.WarningWriterOptions{Deduplicate: true})}
	}
	if o.ReadOnly {
		base, _, err := rest.DefaultServerUrlFor(config)
		if err != nil {
			return nil, err
		}
		config.Wrap(ReadOnlyBut(strings.TrimSuffix(base.Path, "/"), o.But))
	}
	// Bodies are read raw; the only type that is decoded is the server's Status.
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType = runtime.ContentTypeJSON
	config.AcceptContentTypes = runtime.ContentTypeJSON
	return rest.UnversionedRESTClientFor(config)
}

// warner writes warnings of the server, each once. One about a request that may hold what was made of a Secret
// may quote it.
type warner struct{ rest.WarningHandler }

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w warner) HandleWarningHeaderWithContext(ctx context.Context, code int, agent, text string) {
	if text != "" && engine.UsesSecret(ctx) {
		text = engine.ErrHidden.Error()
	}
	w.HandleWarningHeader(code, agent, text)
}
