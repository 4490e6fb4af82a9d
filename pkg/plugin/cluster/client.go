package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	flowcontrolapi "k8s.io/api/flowcontrol/v1"
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
	clienttransport "k8s.io/client-go/transport"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
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
	// QPS and Burst limit the requests; a negative QPS is not a limit. Without both, the server sets the pace if
	// it has API Priority and Fairness.
	QPS   float32
	Burst int
	// ReadOnly makes writing impossible; see RefusedError.
	ReadOnly bool
	// But lists the resources whose single objects a ReadOnly client may patch and delete all the same.
	But []schema.GroupResource
	// ChunkSize is the page size of lists; negative for no pages.
	ChunkSize int64
	// Warnings receives the server's warnings, each string once, and a warning about the first unreadable
	// schema; nil drops them.
	Warnings io.Writer
	// Waiting, if set, is called with the times from and to which a request waits for QPS and Burst, or
	// because the server asks for it.
	Waiting func(from, to time.Time)
}

// Client talks to one API server. It is safe for concurrent use.
type Client struct {
	*connection
	patience *Patience // of a RetryingClient; nil for reads that give up early
}

// connection is what the views of a Client share.
type connection struct {
	rest      rest.Interface
	api       *discovery.DiscoveryClient
	discovery discovery.CachedDiscoveryInterface // cached in memory
	mapper    meta.RESTMapper
	chunkSize int64
	info      Info

	catalogMu  sync.Mutex
	catalog    *catalog
	namespaces atomic.Pointer[namespaces]
	schemas    schemaCache
	warnings   io.Writer
	warned     sync.Map // warnings of sources

	hasToAnswer bool                  // in time, or no more requests are sent
	silent      atomic.Pointer[error] // why it did not
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
	c := &Client{connection: &connection{
		rest: client, chunkSize: cmp.Or(o.ChunkSize, defaultChunkSize),
		info: infoOf(getter, config), warnings: o.Warnings,
	}}
	c.Renew()
	// used only for its HTTP cache, which revalidates
	cached, err := getter.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	c.api = discovery.NewDiscoveryClient(cached.RESTClient())
	c.discovery = memory.NewMemCacheClient(patientDiscovery{c.api, c})
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(c.discovery),
		c.discovery, nil)
	c.mapper = &knownMapper{
		RESTMapper: mapper, CategoryExpander: restmapper.NewDiscoveryCategoryExpander(c.discovery),
	}
	return c, nil
}

// Mapper maps kinds to resources as the server serves them. It is a restmapper.CategoryExpander, too.
func (c *Client) Mapper() meta.RESTMapper { return c.mapper }

// maxFirstAnswer limits the time for the server's first response, as client-go does for discovery.
const maxFirstAnswer = 32 * time.Second

// Answers returns an error if the server does not respond to a small request; any response will do. After
// that, one read without a response fails all later ones. It must be called before others use the client.
func (c *Client) Answers(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, maxFirstAnswer)
	defer cancel()
	if _, err := c.do(limited, http.MethodGet, c.rest.Get().AbsPath("/version")); timedOut(err) {
		return fmt.Errorf("the server does not answer: %w", err)
	}
	c.hasToAnswer = true
	return ctx.Err()
}

func newRESTClient(config *rest.Config, o Options) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion = &schema.GroupVersion{}
	pace(config, o)
	config.WarningHandler, config.WarningHandlerWithContext = nil, rest.NoWarnings{}
	if o.Warnings != nil {
		config.WarningHandlerWithContext = warner{rest.NewWarningWriter(o.Warnings,
			rest.WarningWriterOptions{Deduplicate: true})}
	}
	if o.ReadOnly {
		base, _, err := rest.DefaultServerUrlFor(config)
		if err != nil {
			return nil, err
		}
		config.Wrap(ReadOnlyBut(strings.TrimSuffix(base.Path, "/"), o.But))
	}
	// Bodies are read raw; only a Status is decoded.
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType = runtime.ContentTypeJSON
	config.AcceptContentTypes = runtime.ContentTypeJSON
	return rest.UnversionedRESTClientFor(config)
}

// warner writes the server's warnings, each once. It hides those about unlogged requests, which may quote a
// Secret.
type warner struct{ rest.WarningHandler }

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w warner) HandleWarningHeaderWithContext(ctx context.Context, code int, agent, text string) {
	if logger, err := logr.FromContext(ctx); text != "" && err == nil && logger.IsZero() {
		text = engine.ErrHidden.Error()
	}
	w.HandleWarningHeader(code, agent, text)
}

// Info names the cluster and user of a Client, for headings and prompts. Fields that the kubeconfig lacks are
// empty.
type Info struct {
	Context string
	Server  string
	User    string
}

// String names the cluster for a prompt, on one line: "context prod (https://10.0.0.1:6443)".
func (i Info) String() string {
	if i.Context == "" {
		return redact.EscapeLine(i.Server)
	}
	return redact.EscapeLine(fmt.Sprintf("context %s (%s)", i.Context, i.Server))
}

// Info describes the connection.
func (c *Client) Info() Info { return c.info }

// userInfo matches the user and password of a URL.
var userInfo = regexp.MustCompile(`(^|//)\S*@`)

// withoutPassword removes the user and password from the URLs in a string.
func withoutPassword(text string) string { return userInfo.ReplaceAllString(text, "$1") }

// unquoted returns an error without the passwords of URLs.
func unquoted(err error) error {
	if text := err.Error(); text != withoutPassword(text) {
		return errors.New(withoutPassword(text))
	}
	return err
}

func infoOf(getter genericclioptions.RESTClientGetter, config *rest.Config) Info {
	info := Info{Server: withoutPassword(config.Host), User: config.Impersonate.UserName}
	raw, err := getter.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return info // in a cluster there is no kubeconfig
	}
	info.Context = raw.CurrentContext
	// The loader does not apply the --context flag to the raw configuration.
	if flags, ok := getter.(*genericclioptions.ConfigFlags); ok && flags.Context != nil && *flags.Context != "" {
		info.Context = *flags.Context
	}
	if context := raw.Contexts[info.Context]; context != nil && info.User == "" {
		info.User = context.AuthInfo
	}
	return info
}

// MaxLogLevel is the highest level of -v at which client-go logs no bodies, which have values of Secrets.
const MaxLogLevel = 7

// Wrap adds to a config the transport of all API server clients, which bounds responses and sends requests
// only to the config's server.
//
// client-go adds credentials above this transport and presents certificates below it, so a request that it
// refuses carries neither to another server.
func Wrap(config *rest.Config) *rest.Config {
	config.Wrap(transport.Bounded(transport.MaxBytes, "; ask for less, for instance with a selector or a smaller --chunk-size"))
	origin, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return config // making a client fails, and says why
	}
	config.Wrap(transport.Redirects{Origin: origin}.Bound)
	if origin.User != nil {
		loginOf(config, origin)
	}
	if p := config.AuthProvider; p != nil && p.Name == "oidc" {
		transport.AllowLogins(p.Config["idp-issuer-url"])
	}
	return config
}

// loginOf moves the user and password out of the server's URL, which client-go logs.
func loginOf(config *rest.Config, server *url.URL) {
	bare := *server
	bare.User = nil
	config.Host = bare.String()
	if config.Username == "" && config.BearerToken == "" && config.BearerTokenFile == "" &&
		config.AuthProvider == nil && config.ExecProvider == nil {
		config.Username = server.User.Username()
		config.Password, _ = server.User.Password()
	}
}

// pace limits the rate of requests by the options, and reports how long each request waits for the limit or a
// Retry-After.
//
// Without a limit in the options, a server with API Priority and Fairness, which shows in each response, sets
// the pace itself; any other server gets 50 requests a second.
func pace(config *rest.Config, o Options) {
	config.QPS, config.Burst = cmp.Or(o.QPS, defaultQPS), cmp.Or(o.Burst, defaultBurst)
	p := &limiter{waiting: o.Waiting}
	if p.waiting == nil {
		p.waiting = func(time.Time, time.Time) {}
	}
	if config.QPS > 0 { // otherwise there is no limit
		p.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, config.Burst)
		config.RateLimiter = p
	}
	config.WrapTransport = clienttransport.Wrappers(func(next http.RoundTripper) http.RoundTripper {
		return &paceTransport{next, p, o.QPS == 0 && o.Burst == 0}
	}, config.WrapTransport)
}

// limiter is client-go's own limiter, which does not report its waits.
type limiter struct {
	flowcontrol.RateLimiter
	waiting func(from, to time.Time)
	fair    atomic.Bool // the server sets the pace
}

// Wait implements flowcontrol.RateLimiter.
func (l *limiter) Wait(ctx context.Context) error {
	if l.fair.Load() {
		return ctx.Err()
	}
	start := time.Now()
	err := l.RateLimiter.Wait(ctx)
	l.waiting(start, time.Now())
	return err
}

// paceTransport sees the responses after which Retry or client-go waits.
type paceTransport struct {
	next    http.RoundTripper
	limiter *limiter
	follows bool // the server's pace, if it sets one
}

// RoundTrip implements http.RoundTripper.
func (t *paceTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err != nil {
		return response, err
	}
	if t.follows && response.Header.Get(flowcontrolapi.ResponseHeaderMatchedFlowSchemaUID) != "" {
		t.limiter.fair.Store(true)
	}
	if response.StatusCode != http.StatusTooManyRequests &&
		response.StatusCode < http.StatusInternalServerError {
		return response, nil
	}
	if seconds, bad := strconv.Atoi(response.Header.Get("Retry-After")); bad == nil && seconds > 0 {
		now := time.Now()
		t.limiter.waiting(now, now.Add(time.Duration(seconds)*time.Second))
	}
	return response, nil
}
