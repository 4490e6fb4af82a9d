package faultproxy

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Options say what a Proxy does to requests.
type Options struct {
	Seed  uint64
	Rates []Rate
	// InARow bounds how many requests for the same thing suffer one after the
	// other: a client need not have more patience than that. 0 stands for 3.
	InARow int
	// Latency is how long a request waits at most; 0 stands for 50ms.
	Latency time.Duration
	// Exempt reports whether a request passes without a fault; with nil none does.
	Exempt func(*http.Request) bool
	// TLS has the proxy speak HTTP/2, where many requests share the connection
	// that is cut; else it is HTTP/1.1 without encryption.
	TLS bool
}

// Proxy is a running proxy. It acts as the user whose credentials New was given,
// and asks its own clients for none.
type Proxy struct {
	options   Options
	server    *httptest.Server
	target    *url.URL
	transport http.RoundTripper
	serving   sync.WaitGroup

	mu       sync.Mutex
	chance   chance
	requests int
	at       int // of the requests, when to call
	call     func()
	injected map[Fault]int
	writes   []Write
	versions map[string][]version
}

// New starts a proxy on 127.0.0.1 to the server of a configuration.
func New(config *rest.Config, o Options) (*Proxy, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	if o.InARow == 0 {
		o.InARow = 3
	}
	if o.Latency == 0 {
		o.Latency = 50 * time.Millisecond
	}
	p := &Proxy{
		options: o, target: target, transport: transport,
		chance:   chance{seed: o.Seed, rates: o.Rates, inARow: o.InARow, asked: map[string]int{}, suffered: map[string]int{}},
		injected: map[Fault]int{}, versions: map[string][]version{},
	}
	p.server = httptest.NewUnstartedServer(p)
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0) // connections break by intent
	p.server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connection{}, c)
	}
	if p.server.EnableHTTP2 = o.TLS; o.TLS {
		p.server.StartTLS()
	} else {
		p.server.Start()
	}
	return p, nil
}

// connection is the key of the connection that a request came by.
type connection struct{}

// Close ends the proxy; requests that are under way are finished.
func (p *Proxy) Close() { p.server.Close() }

// Route changes the clusters of a kubeconfig so that requests go through the proxy.
func (p *Proxy) Route(config *clientcmdapi.Config) {
	for _, cluster := range config.Clusters {
		cluster.Server, cluster.CertificateAuthorityData = p.server.URL, nil
		if certificate := p.server.Certificate(); certificate != nil {
			cluster.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
		}
	}
}

// Requests is how many have come so far.
func (p *Proxy) Requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

// CallAt has f called once, when so many more requests have arrived, before the last
// of them is handled. It replaces an earlier call that is still pending; nil cancels
// it. f must not call the proxy.
func (p *Proxy) CallAt(more int, f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at, p.call = p.requests+more, f
}

// Settle waits until no request is under way. A client that is gone leaves some
// behind, which still reach the server.
func (p *Proxy) Settle() { p.serving.Wait() }

// Injected counts the faults that happened.
func (p *Proxy) Injected() map[Fault]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.injected)
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.serving.Add(1)
	defer p.serving.Done()
	fault, random := p.arrive(r)
	switch fault {
	case CutBefore:
		p.count(fault)
		cut(r)
	case TooManyRequests:
		p.refuse(w, fault, apierrors.NewTooManyRequests("too many requests, said the fault proxy", 1))
		return
	case InternalError:
		p.refuse(w, fault, apierrors.NewGenericServerResponse(http.StatusInternalServerError, r.Method, schema.GroupResource{}, "", "said the fault proxy", 0, true))
		return
	case Unavailable:
		p.refuse(w, fault, apierrors.NewServiceUnavailable("unavailable, said the fault proxy"))
		return
	case Latency:
		p.count(fault)
		time.Sleep(time.Duration(random.Int64N(int64(p.options.Latency))))
	}
	a, err := p.forward(r)
	if err != nil {
		http.Error(w, "fault proxy: "+err.Error(), http.StatusBadGateway)
		return
	}
	p.answer(w, r, fault, a)
}

// arrive counts a request and returns its fault.
func (p *Proxy) arrive(r *http.Request) (Fault, *rand.Rand) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	if p.call != nil && p.requests >= p.at {
		call := p.call
		p.call = nil
		call()
	}
	if p.options.Exempt != nil && p.options.Exempt(r) {
		return "", nil
	}
	return p.chance.next(r)
}

// cut closes the connection, with all that is on it.
func cut(r *http.Request) {
	_ = r.Context().Value(connection{}).(net.Conn).Close() // as broken as can be
	panic(http.ErrAbortHandler)
}

func (p *Proxy) count(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.injected[f]++
}

func (p *Proxy) refuse(w http.ResponseWriter, f Fault, err *apierrors.StatusError) {
	p.count(f)
	sendStatus(w, err.Status())
}

// answered is what the server said.
type answered struct {
	status int
	header http.Header
	body   []byte
}

// forward asks the server, whether or not the client still waits for the answer.
func (p *Proxy) forward(r *http.Request) (answered, error) {
	out := r.Clone(context.WithoutCancel(r.Context()))
	out.RequestURI = ""
	out.URL.Scheme, out.URL.Host, out.Host = p.target.Scheme, p.target.Host, ""
	out.URL.Path = strings.TrimSuffix(p.target.Path, "/") + r.URL.Path
	out.Header.Del("Connection")
	out.Header.Set("Accept-Encoding", "identity") // versions are read from answers
	response, err := p.transport.RoundTrip(out)
	if err != nil {
		return answered{}, err
	}
	defer response.Body.Close() //nolint:errcheck // it has been read
	body, err := io.ReadAll(response.Body)
	a := answered{status: response.StatusCode, header: response.Header, body: body}
	if err == nil {
		p.record(r, a)
	}
	return a, err
}

// answer passes on what the server said, or does not.
func (p *Proxy) answer(w http.ResponseWriter, r *http.Request, f Fault, a answered) {
	switch f {
	case CutAfter:
		p.count(f)
		cut(r)
	case TimeoutAfter:
		p.refuse(w, f, apierrors.NewServerTimeout(schema.GroupResource{}, r.Method, 1))
		return
	case Stale:
		if older, ok := p.older(r, a); ok {
			p.count(f)
			a = older
		}
	}
	maps.Copy(w.Header(), a.header)
	w.Header().Del("Connection")
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
	if f != CutShort {
		_, _ = w.Write(a.body) // a client that is gone needs no answer
		return
	}
	p.count(f)
	_, _ = w.Write(a.body[:len(a.body)/2])
	_ = http.NewResponseController(w).Flush()
	cut(r)
}

// sendStatus answers as an API server does.
func sendStatus(w http.ResponseWriter, s metav1.Status) {
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	w.Header().Set("Content-Type", "application/json")
	if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(s.Details.RetryAfterSeconds)))
	}
	w.WriteHeader(int(s.Code))
	_ = json.NewEncoder(w).Encode(s) // a client that is gone needs no answer
}
