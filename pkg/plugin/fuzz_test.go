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

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
)

// The ways in which a server of FuzzServer answers one of its requests. Each gets edits and a payload.
const (
	isEdited     = iota // the usual answer, with edits of its values
	isBody              // the payload for the answer
	isInserted          // the payload somewhere in the usual answer
	isCut               // the usual answer, cut short
	isStatus            // a status, with the payload for the answer
	isRefusal           // a Status of the API server, with edits of its values
	isRedirect          // a redirect to the payload
	isType              // the usual answer of the type of the payload
	isHeader            // the usual answer, with the payload for a header
	isRaw               // no HTTP but the payload
	isEndless           // the payload again and again
	isCompressed        // the same, compressed
	isHeaders           // headers with the payload again and again
	hostilities

	fuzzed = isEndless // those before it: one without an end takes longer than a fuzzer waits
)

// mostServed is what a server without an end gets rid of in one run: some answers of the
// limit, which is 128 MiB, with what is on its way.
const mostServed = 2 << 30

// FuzzServer plays an API server that answers one request of a command, or some times, with something
// else. The command must end by itself, and say why if it could not do all.
func FuzzServer(f *testing.F) {
	x := newHostility(f)
	preview, explain, apply := x.command("preview"), x.command("explain"), x.command("apply-existing")
	for way := range byte(fuzzed) {
		for request := range byte(len(x.usual[preview].requests)) {
			payload := []string{`{"items":[{}],"metadata":{"continue":"1"}}`, "{},", `{"":`, "null"}[int(request+way)%4]
			f.Add(preview, request, way, request*37+way, []byte{request + way, 0, request * 7, way * 5, way, 0, 3, request}, []byte(payload))
		}
		f.Add(explain, byte(6), way, byte(0), []byte{0, 0, 1, way}, []byte("a")) // a listing
	}
	for i, request := range x.usual[apply].requests {
		if strings.HasPrefix(request, "PATCH") || strings.HasPrefix(request, "POST") {
			for _, way := range []byte{isEdited, isBody, isRefusal, isRedirect} {
				f.Add(apply, byte(i), way, byte(1), []byte{0, 0, 5, way}, []byte("["))
			}
		}
	}
	f.Fuzz(func(t *testing.T, command, request, way, times byte, edits, payload []byte) {
		x.try(t, command, request, int(way)%fuzzed, times, edits, payload)
	})
}

// TestAnswersWithoutAnEnd has each kind of answer of the fuzz test that does not end.
func TestAnswersWithoutAnEnd(t *testing.T) {
	x := newHostility(t)
	for way := isEndless; way < hostilities; way++ {
		for name, requests := range map[string][]string{
			"preview":        {"GET /api", "GET /api/v1", "GET /apis", "GET /openapi/v3/api/v1", "GET /api/v1/namespaces/default/configmaps"},
			"explain":        {"GET /api/v1/namespaces/default/configmaps/c"},
			"apply-existing": {"PATCH /api/v1/namespaces/default/configmaps/c", "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews"},
		} {
			command := x.command(name)
			for _, request := range requests {
				i := slices.Index(x.usual[command].requests, request)
				if i < 0 {
					t.Fatalf("%s sends no %s but %q", name, request, x.usual[command].requests)
				}
				x.try(t, command, byte(i), way, 1, nil, []byte("{},"))
			}
		}
	}
}

// hostility is what hostile servers are tried on.
type hostility struct {
	names []string
	usual []serverRun // of each
}

func newHostility(t testing.TB) *hostility {
	x := &hostility{}
	s := &apiServer{}
	s.Server = httptest.NewServer(s)
	defer s.Close()
	for name := range hostileCommands() {
		x.names = append(x.names, name)
	}
	slices.Sort(x.names)
	for _, name := range x.names {
		x.usual = append(x.usual, runAgainst(t, s, "{token: hidden}", hostileCommands()[name].args))
	}
	return x
}

func (x *hostility) command(name string) byte { return byte(slices.Index(x.names, name)) }

// try runs a command against a server that answers one of its requests in a way: once, or four times
// if the lower bits of times are set. The highest bit has it aggregate its discovery.
func (x *hostility) try(t *testing.T, command, request byte, way int, times byte, edits, payload []byte) {
	i := int(command) % len(x.names)
	c := hostileCommands()[x.names[i]]
	s := &hostileServer{way: way, edits: edits, payload: payload}
	s.left.Store(1)
	if times%8 == 7 {
		s.left.Store(4) // a write is tried ten times, which takes longer than a fuzzer waits
	}
	s.apiServer.aggregated = times >= 128
	s.target = x.usual[i].requests[int(request)%len(x.usual[i].requests)]
	s.apiServer.hostile = s.answer
	s.Server = httptest.NewServer(&s.apiServer)
	defer s.Close()
	got := runAgainst(t, &s.apiServer, "{token: hidden}", append(slices.Clone(c.args), "--request-timeout=5s"))
	what := fmt.Sprintf("%q, whose %s is answered in way %d by %.100q and %v: exit code %d\n%.2000s", c.args, s.target, s.way, payload, edits, got.code, got.errOut)
	switch {
	case got.code < plugin.ExitOK || got.code > plugin.ExitIncomplete:
		t.Error(what)
	case got.code > plugin.ExitChanges && !strings.Contains(got.out+got.errOut, "error:") && !strings.Contains(got.out+got.errOut, "failed"):
		t.Errorf("no reason: %s", what)
	case strings.Contains(got.out+got.errOut, "runtime error"), strings.Contains(got.out+got.errOut, "PANIC"), strings.Contains(got.out+got.errOut, "internal error"):
		t.Errorf("a panic: %s", what)
	case s.served.Load() > mostServed:
		t.Errorf("%d bytes were read: %s", s.served.Load(), what)
	case s.patched && c.args[0] != "apply-existing", s.patched && slices.Contains(c.args, "--dry-run=server"):
		t.Errorf("something was written: %s", what)
	}
}

// hostileServer is an apiServer that answers one of its requests in another way.
type hostileServer struct {
	apiServer
	target  string       // "GET /api"
	left    atomic.Int64 // answers that are to be hostile
	way     int
	edits   []byte
	payload []byte
	served  atomic.Int64 // bytes, of answers without an end
}

func (s *hostileServer) answer(w http.ResponseWriter, r *http.Request) bool {
	if s.target != r.Method+" "+r.URL.Path || s.left.Add(-1) < 0 {
		return false
	}
	usual, status := s.apiServer.answer(r)
	at := 0
	if len(s.payload) > 0 {
		at = int(s.payload[0]) * len(usual) / 256
	}
	w.Header().Set("Content-Type", s.contentType(r))
	switch s.way {
	case isEdited:
		w.WriteHeader(status)
		_, _ = io.WriteString(w, edited(usual, s.edits, s.payload))
	case isRefusal:
		code := []int{400, 403, 404, 409, 410, 422, 429, 500, 503, 504, 201, 203}[at%12]
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, edited(fmt.Sprintf(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "code": %d, "reason": "Invalid", "metadata": {"continue": "x"},
			"details": {"name": "c", "kind": "configmaps", "retryAfterSeconds": 0, "causes": [{"reason": "FieldManagerConflict", "message": "conflict with \"m\"", "field": ".metadata.labels.a"}]}}`, code), s.edits, s.payload))
	case isHeader:
		name, value, _ := strings.Cut(string(s.payload), ":")
		w.Header()[name] = []string{value}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, usual)
	case isBody:
		_, _ = w.Write(s.payload)
	case isInserted:
		_, _ = io.WriteString(w, usual[:at]+string(s.payload)+usual[at:])
	case isCut:
		w.Header().Set("Content-Length", fmt.Sprint(len(usual)))
		_, _ = io.WriteString(w, usual[:at])
	case isStatus:
		w.Header().Set("Retry-After", "31536000")
		w.WriteHeader(200 + int(s.left.Load()*100+int64(at))%400)
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
