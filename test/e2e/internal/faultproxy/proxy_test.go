package faultproxy

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// apiServer stores one object, whose version grows with each write.
type apiServer struct {
	*httptest.Server
	version, reached atomic.Int64
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.reached.Add(1)
		if r.Method == http.MethodPatch && !r.URL.Query().Has("dryRun") {
			s.version.Add(1)
		}
		fmt.Fprintf(w, `{"metadata": {"uid": "u", "resourceVersion": "%d"}}`, s.version.Load())
	}))
	t.Cleanup(s.Close)
	return s
}

// client sends requests through a proxy to an API server.
type client struct {
	*Proxy
	server *apiServer
	http   *http.Client
	url    string
}

func newClient(t *testing.T, o Options) *client {
	t.Helper()
	c := &client{server: newAPIServer(t)}
	var err error
	if c.Proxy, err = New(&rest.Config{Host: c.server.URL}, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["c"] = &clientcmdapi.Cluster{}
	kubeconfig.Contexts["c"], kubeconfig.CurrentContext = &clientcmdapi.Context{Cluster: "c"}, "c"
	c.Route(kubeconfig)
	config, err := clientcmd.NewDefaultClientConfig(*kubeconfig, nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	if c.http, err = rest.HTTPClientFor(config); err != nil {
		t.Fatal(err)
	}
	c.url = config.Host
	return c
}

const object = "/api/v1/namespaces/one/configmaps/a"

// ask gives what the client gets to see of an answer.
func (c *client) ask(t *testing.T, method, path string) (string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, c.url+path, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.http.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close() //nolint:errcheck // it has been read
	body, err := io.ReadAll(response.Body)
	text := fmt.Sprint(response.StatusCode)
	if after := response.Header.Get("Retry-After"); after != "" {
		text += " after " + after
	}
	if _, version, ok := strings.Cut(string(body), `resourceVersion": "`); ok && err == nil {
		text += " version " + strings.TrimRight(version, `"}`)
	}
	return text, err
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		fault   Fault
		want    string // what the client sees of a write; "" is a broken connection
		reaches bool   // the server
	}{
		{CutBefore, "", false},
		{CutAfter, "", true},
		{CutShort, "", true},
		{TooManyRequests, "429 after 1", false},
		{InternalError, "500", false},
		{Unavailable, "503", false},
		{TimeoutAfter, "500 after 1", true},
		{Latency, "200 version 1", true},
	} {
		for _, encrypted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, TLS %t", c.fault, encrypted), func(t *testing.T) {
				p := newClient(t, Options{Rates: []Rate{{c.fault, 1000}}, TLS: encrypted})
				got, err := p.ask(t, http.MethodPatch, object)
				if c.want == "" && err == nil || c.want != "" && (err != nil || got != c.want) {
					t.Errorf("got %q, error %v", got, err)
				}
				p.Settle()
				if reached := p.server.version.Load() == 1; reached != c.reaches {
					t.Errorf("reached the server: %t", reached)
				}
				if written := len(p.Writes()) == 1; written != c.reaches {
					t.Errorf("recorded: %v", p.Writes())
				}
				if d := cmp.Diff(map[Fault]int{c.fault: 1}, p.Injected()); d != "" {
					t.Error(d)
				}
			})
		}
	}
}

func TestStaleReadsAnswerAnOlderVersion(t *testing.T) {
	p := newClient(t, Options{Rates: []Rate{{Stale, 1000}}, InARow: 100})
	ask := func(method, want string) {
		t.Helper()
		if got, err := p.ask(t, method, object); err != nil || got != want {
			t.Errorf("%s: got %q, error %v, want %q", method, got, err, want)
		}
	}
	ask(http.MethodGet, "200 version 0") // none is older
	ask(http.MethodPatch, "200 version 1")
	ask(http.MethodGet, "200 version 0")
	ask(http.MethodPatch, "200 version 2")
	ask(http.MethodGet, "200 version 1")
	if got := p.Injected()[Stale]; got != 2 {
		t.Errorf("%d stale reads are counted", got)
	}
}

// TestSameSeedSameFaults asks for the same things, in two namespaces and in two
// orders, one of them side by side.
func TestSameSeedSameFaults(t *testing.T) {
	rates := []Rate{{InternalError, 300}, {Unavailable, 300}}
	fates := func(seed uint64, namespace string, sideBySide bool) map[string][]string {
		p := newClient(t, Options{Seed: seed, Rates: rates})
		out := map[string][]string{}
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range 8 {
			name := fmt.Sprint("o", i)
			one := func() {
				for range 6 {
					got, err := p.ask(t, http.MethodGet, "/api/v1/namespaces/"+namespace+"/configmaps/"+name)
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					out[name] = append(out[name], got)
					mu.Unlock()
				}
			}
			if sideBySide {
				all.Go(one)
			} else {
				one()
			}
		}
		all.Wait()
		return out
	}
	first := fates(1, "a", false)
	if d := cmp.Diff(first, fates(1, "b", true)); d != "" {
		t.Errorf("another fate (-in order +side by side):\n%s", d)
	}
	if cmp.Equal(first, fates(2, "a", false)) {
		t.Error("another seed means nothing")
	}
}

func TestPatienceEnds(t *testing.T) {
	p := newClient(t, Options{Rates: []Rate{{Unavailable, 1000}}, InARow: 2})
	var got []string
	for range 6 {
		answer, err := p.ask(t, http.MethodGet, object)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, answer)
	}
	if want := []string{"503", "503", "200 version 0", "503", "503", "200 version 0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestExemptRequestsPass(t *testing.T) {
	exempt := func(r *http.Request) bool { return r.Method == http.MethodGet }
	p := newClient(t, Options{Rates: []Rate{{Unavailable, 1000}}, Exempt: exempt})
	if got, err := p.ask(t, http.MethodGet, object); err != nil || got != "200 version 0" {
		t.Errorf("got %q, error %v", got, err)
	}
	if got, err := p.ask(t, http.MethodPatch, object); err != nil || got != "503" {
		t.Errorf("got %q, error %v", got, err)
	}
}

func TestCallAt(t *testing.T) {
	p := newClient(t, Options{})
	var reached []int64
	ask := func() {
		if _, err := p.ask(t, http.MethodGet, object); err != nil {
			t.Fatal(err)
		}
	}
	ask()
	p.CallAt(2, func() { reached = append(reached, p.server.reached.Load()) })
	for range 4 {
		ask()
	}
	if !slices.Equal(reached, []int64{2}) {
		t.Errorf("called when %v requests had reached the server, want once, after 2", reached)
	}
	if p.Requests() != 5 {
		t.Errorf("%d requests are counted", p.Requests())
	}
}

func TestWritesAreRecorded(t *testing.T) {
	p := newClient(t, Options{Rates: []Rate{{CutAfter, 1000}}, InARow: 1})
	if _, err := p.ask(t, http.MethodPatch, object+"?dryRun=All&fieldManager=m"); err == nil {
		t.Error("the connection was not cut")
	}
	if _, err := p.ask(t, http.MethodPatch, object+"?fieldManager=m"); err == nil {
		t.Error("the connection was not cut")
	}
	p.Settle()
	want := []Write{
		{Method: http.MethodPatch, Path: object, Manager: "m", DryRun: true, Status: 200, UID: "u", ResourceVersion: "0"},
		{Method: http.MethodPatch, Path: object, Manager: "m", Status: 200, UID: "u", ResourceVersion: "1"},
	}
	if d := cmp.Diff(want, p.Writes()); d != "" {
		t.Error(d)
	}
}
