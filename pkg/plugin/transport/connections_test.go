package transport_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// Frames of HTTP/2, of the first stream where they belong to one.
const (
	settings    = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	goAway      = "\x00\x00\x08\x07\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00" // no stream was looked at, no error
	ping        = "\x00\x00\x08\x06\x00\x00\x00\x00\x00" + "question"
	earlyHints  = "\x00\x00\x05\x01\x04\x00\x00\x00\x01" + "\x08\x03103"
	status200   = "\x00\x00\x01\x01\x04\x00\x00\x00\x01" + "\x88"
	noData      = "\x00\x00\x00\x00\x00\x00\x00\x00\x01"
	refused     = "\x00\x00\x04\x03\x00\x00\x00\x00\x01" + "\x00\x00\x00\x07" // REFUSED_STREAM: nothing was done, and net/http asks again
	firstStream = "\x00\x00\x00\x01"
	typeHeaders = 1
	preface     = 24 // bytes that a client begins with
)

// frames is a server of HTTP/2 that sends frames when a connection begins, others when a request has come, and
// others again for ever.
type frames struct {
	first, answer, forever string

	*httptest.Server
	connections atomic.Int64
}

func (s *frames) start(t *testing.T) {
	t.Helper()
	s.Server = httptest.NewUnstartedServer(http.NotFoundHandler())
	s.TLS = &tls.Config{NextProtos: []string{"h2"}} //nolint:gosec // a test server
	s.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){"h2": func(_ *http.Server, c *tls.Conn, _ http.Handler) { s.serve(c) }}
	s.StartTLS()
	t.Cleanup(s.Close)
}

// serve ends when the client closes the connection.
func (s *frames) serve(c net.Conn) {
	s.connections.Add(1)
	_, _ = io.WriteString(c, settings+s.first)
	if _, err := io.CopyN(io.Discard, c, preface); err != nil {
		return
	}
	for {
		var header [9]byte
		if _, err := io.ReadFull(c, header[:]); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(header[:4])>>8)); err != nil {
			return
		}
		if header[3] == typeHeaders {
			_, _ = io.WriteString(c, strings.ReplaceAll(s.answer, firstStream, string(header[5:])))
			go s.repeat(c)
		}
	}
}

func (s *frames) repeat(c net.Conn) {
	for s.forever != "" {
		if _, err := io.WriteString(c, s.forever); err != nil {
			return
		}
	}
}

// clients are the ways in which the program sends requests.
func (s *frames) clients(t *testing.T, l transport.Limits) map[string]*http.Client {
	t.Helper()
	config := &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	config.Wrap(transport.Bounded(l))
	config.Wrap(transport.Redirects{}.Bound)
	api, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return map[string]*http.Client{"API server": api, "other servers": transport.NewClient(roots, time.Minute)}
}

// answered sends a request and reads the answer to its end.
func answered(ctx context.Context, client *http.Client, method, url string) error {
	r, err := http.NewRequestWithContext(ctx, method, url+"/api?hidden", strings.NewReader(map[string]string{http.MethodPatch: "{}"}[method]))
	if err != nil {
		return err
	}
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// A server that ends each connection before an answer is asked a bounded number of times, whatever it is asked.
func TestConnectionsAreBounded(t *testing.T) {
	for name, s := range map[string]*frames{
		"when a request comes":      {answer: goAway},
		"when the connection comes": {first: goAway},
	} {
		t.Run(name, func(t *testing.T) {
			s.start(t)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			sent := 0
			for by, client := range s.clients(t, transport.Limits{}) {
				for what, ask := range map[string]struct {
					method string
					ctx    context.Context //nolint:containedctx // of one request
				}{
					"read": {http.MethodGet, t.Context()}, "write": {http.MethodPatch, t.Context()}, "watch": {http.MethodGet, transport.ForWatch(t.Context())},
				} {
					sent++
					s.connections.Store(0)
					err := transport.Cause(answered(ask.ctx, client, ask.method, s.URL))
					want := "the answer of " + s.URL + " to a " + ask.method +
						" request was given up: 30 connections ended without it; look for the reason in the server, or in a proxy before it, and try again"
					if err == nil || err.Error() != want || !transport.IsLimit(err) {
						t.Errorf("%s, %s: %v, want %s", by, what, err, want)
					}
					if n := s.connections.Load(); n < 2 || n > 31 {
						t.Errorf("%s, %s: %d connections", by, what, n)
					}
				}
			}
			runtime.ReadMemStats(&after)
			if each := (after.TotalAlloc - before.TotalAlloc) / uint64(sent); each > 16<<20 {
				t.Errorf("a request takes %d bytes", each)
			}
		})
	}
}

// What a server sends without an answer, or without more of it, does not keep a request. Where an answer begins, that may take
// as long as it wants.
func TestFramesAreNoAnswer(t *testing.T) {
	const short = 200 * time.Millisecond
	noAnswer, noMore := transport.Limits{Header: short, Idle: time.Hour}, transport.Limits{Header: time.Hour, Idle: short}
	for name, c := range map[string]struct {
		frames *frames
		limits transport.Limits
		want   string
	}{
		"pings":              {&frames{forever: ping}, noAnswer, "nothing came for 200ms"},
		"pings in an answer": {&frames{answer: status200, forever: ping}, noMore, "nothing more came for 200ms"},
		"empty frames":       {&frames{answer: status200, forever: noData}, noMore, "nothing more came for 200ms"},
		"refused streams":    {&frames{answer: refused}, noAnswer, "nothing came for 200ms"},
		"early hints":        {&frames{forever: earlyHints}, noAnswer, "nothing came for 200ms"},
	} {
		t.Run(name, func(t *testing.T) {
			c.frames.start(t)
			client := c.frames.clients(t, c.limits)["API server"]
			if err := answered(t.Context(), client, http.MethodGet, c.frames.URL); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}

// raw is a server that answers with a text, and ends the connection when the client does.
func raw(t *testing.T, text string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close() //nolint:errcheck // the client may have closed it
		_, _ = io.WriteString(c, text)
		_, _ = io.Copy(io.Discard, c)
	}))
	t.Cleanup(server.Close)
	return server
}

// What errors quote of an answer is short, whatever it is: a run keeps and shows it for many objects.
func TestTextsOfServersAreShort(t *testing.T) {
	long := strings.Repeat("word ", 1<<18)
	for name, text := range map[string]string{
		"a status":            "HTTP/1.1 500 " + long + "\r\nContent-Length: 0\r\n\r\n",
		"no status":           "HTTP/1.1 " + long + "\r\n\r\n",
		"no HTTP":             long + "\r\n\r\n",
		"no header":           "HTTP/1.1 200 OK\r\n" + long + "\r\n\r\n",
		"a length":            "HTTP/1.1 200 OK\r\nContent-Length: " + long + "\r\n\r\n",
		"an encoding":         "HTTP/1.1 200 OK\r\nTransfer-Encoding: " + long + "\r\n\r\n",
		"lengths that differ": "HTTP/1.1 200 OK\r\nContent-Length: 1" + strings.Repeat("\r\nContent-Length: 2", 1<<14) + "\r\n\r\n",
	} {
		server := raw(t, text)
		for by, client := range map[string]*http.Client{
			"API server":    {Transport: transport.Bounded(transport.Limits{})(&http.Transport{DisableKeepAlives: true})},
			"other servers": transport.NewClient(nil, time.Minute),
		} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			response, err := client.Do(r)
			if err != nil {
				got = err.Error()
			} else {
				got = response.Status
				_ = response.Body.Close() // nothing was read
			}
			if len(got) < 4 || len(got) > 5_000 {
				t.Errorf("%s, %s: a text of %d bytes", by, name, len(got))
			}
		}
	}
}

// The error says which answer takes too long, and how long that is, wherever it stands still.
func TestClientsSayWhatTakesTooLong(t *testing.T) {
	for name, text := range map[string]string{
		"no answer": "", "a header": "HTTP/1.1 200 OK\r\nX-A: b", "a body": "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\na",
		"a chunk": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\na",
	} {
		server := raw(t, text)
		err := transport.Cause(answered(t.Context(), transport.NewClient(nil, 50*time.Millisecond), http.MethodGet, server.URL))
		want := "the answer of " + server.URL + " to GET /api was given up: it takes longer than 50ms"
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}
