package plugin_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
)

// The ways in which a server of FuzzServer answers one of its requests. Each gets a payload.
const (
	isBody       = iota // the payload for the answer
	isInserted          // the payload somewhere in the usual answer
	isCut               // the usual answer, cut short
	isStatus            // a status, with the payload for the answer
	isRedirect          // a redirect to the payload
	isType              // the usual answer of the type of the payload
	isRaw               // no HTTP but the payload
	isEndless           // the payload again and again
	isCompressed        // the same, compressed
	isHeaders           // headers with the payload again and again
	hostilities
)

// mostServed is what a server without an end gets rid of in one run: some answers of the
// limit, which is 128 MiB, with what is on its way.
const mostServed = 2 << 30

// FuzzServer plays an API server that answers one request of a command with something else. The
// command must end by itself, and say why if it could not do all.
func FuzzServer(f *testing.F) {
	commands := hostileCommands()
	var names []string
	for name := range commands {
		names = append(names, name)
	}
	slices.Sort(names)
	payloads := []string{`{"items":[{}],"metadata":{"continue":"1"}}`, "{},", `{"":`, "null"}
	preview, explain, apply := byte(slices.Index(names, "preview")), byte(slices.Index(names, "explain")), byte(slices.Index(names, "apply-existing"))
	for way := range byte(hostilities) {
		for _, request := range []byte{0, 6, 7, 8, 9, 10} {
			payload := payloads[int(request+way)%len(payloads)]
			if way >= isEndless {
				payload = "{}," // which ends soonest
			}
			f.Add(preview, request, way, []byte(payload))
		}
		f.Add(explain, byte(6), way, []byte("a")) // a listing
	}
	for _, way := range []byte{isBody, isRedirect, isEndless} {
		f.Add(apply, byte(14), way, []byte("[")) // the patch
	}
	f.Fuzz(func(t *testing.T, command, request, way byte, payload []byte) {
		c := commands[names[int(command)%len(names)]]
		s := &hostileServer{way: int(way) % hostilities, payload: payload}
		s.Server = httptest.NewServer(&s.apiServer)
		defer s.Close()
		usual := runAgainst(t, &s.apiServer, "{token: hidden}", c.args)
		s.target = usual.requests[int(request)%len(usual.requests)]
		s.apiServer.hostile = s.answer
		start := time.Now()
		got := runAgainst(t, &s.apiServer, "{token: hidden}", append(slices.Clone(c.args), "--request-timeout=20s"))
		what := fmt.Sprintf("%q, whose %s is answered in way %d by %.100q: exit code %d\n%.2000s", c.args, s.target, s.way, payload, got.code, got.errOut)
		switch {
		case got.code < plugin.ExitOK || got.code > plugin.ExitIncomplete:
			t.Error(what)
		case got.code > plugin.ExitChanges && !strings.Contains(got.out+got.errOut, "error:") && !strings.Contains(got.out+got.errOut, "failed"):
			t.Errorf("no reason: %s", what)
		case strings.Contains(got.out+got.errOut, "runtime error"), strings.Contains(got.out+got.errOut, "PANIC"):
			t.Errorf("a panic: %s", what)
		case s.served.Load() > mostServed:
			t.Errorf("%d bytes were read: %s", s.served.Load(), what)
		case time.Since(start) > time.Minute:
			t.Errorf("it took %s: %s", time.Since(start), what)
		case s.patched && c.args[0] != "apply-existing", s.patched && slices.Contains(c.args, "--dry-run=server"):
			t.Errorf("something was written: %s", what)
		}
	})
}

// hostileServer is an apiServer that answers one of its requests in another way.
type hostileServer struct {
	apiServer
	target  string // "GET /api"
	way     int
	payload []byte
	served  atomic.Int64 // bytes, of answers without an end
}

func (s *hostileServer) answer(w http.ResponseWriter, r *http.Request) bool {
	if s.target != r.Method+" "+r.URL.Path {
		return false
	}
	usual, status := s.apiServer.answer(r)
	at := 0
	if len(s.payload) > 0 {
		at = int(s.payload[0]) * len(usual) / 256
	}
	w.Header().Set("Content-Type", "application/json")
	switch s.way {
	case isBody:
		_, _ = w.Write(s.payload)
	case isInserted:
		_, _ = io.WriteString(w, usual[:at]+string(s.payload)+usual[at:])
	case isCut:
		w.Header().Set("Content-Length", fmt.Sprint(len(usual)))
		_, _ = io.WriteString(w, usual[:at])
	case isStatus:
		w.Header().Set("Retry-After", "31536000")
		w.WriteHeader(200 + at%400)
		_, _ = w.Write(s.payload)
	case isRedirect:
		w.Header()["Location"] = []string{string(s.payload)}
		w.WriteHeader(301 + at%8)
	case isType:
		w.Header()["Content-Type"] = []string{string(s.payload)}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, usual)
	case isRaw:
		s.raw(w, func(to io.Writer) { _, _ = to.Write(s.payload) })
	case isEndless:
		s.repeat(w)
	case isCompressed:
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		s.repeat(packed)
		_ = packed.Close()
	case isHeaders:
		s.raw(w, func(to io.Writer) {
			_, _ = io.WriteString(to, "HTTP/1.1 200 OK\r\n")
			s.payload = []byte(fmt.Sprintf("X-A: %q\r\n", s.payload))
			s.repeat(to)
		})
	}
	return true
}

// repeat writes the payload until nobody reads it any more, or too much has been read.
func (s *hostileServer) repeat(to io.Writer) {
	if len(s.payload) == 0 {
		return
	}
	part := bytes.Repeat(s.payload, 1+(1<<16)/len(s.payload))
	for s.served.Load() <= mostServed {
		n, err := to.Write(part)
		if s.served.Add(int64(n)); err != nil {
			return
		}
	}
}

// raw writes to the connection itself, and closes it.
func (s *hostileServer) raw(w http.ResponseWriter, write func(io.Writer)) {
	connection, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	write(connection)
	_ = connection.Close()
}
