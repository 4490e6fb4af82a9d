package factory_test

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
)

// echo answers with what it was sent.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s auth=%q type=%q x=%q body=%s", r.Method, r.URL.Path,
		r.Header.Get("Authorization"), r.Header.Get("Content-Type"), r.Header["X-Value"], body)
}

func fetch(t *testing.T, c *factory.ServiceClient, r engine.RemoteRequest) (string, error) {
	t.Helper()
	if r.Method == "" {
		r.Method = "GET"
	}
	content, err := c.Fetch(t.Context(), r)
	return string(content), err
}

func TestFetchSendsWhatThePolicySaysAndNothingElse(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(echo))
	defer server.Close()
	for _, c := range []struct {
		request engine.RemoteRequest
		want    string
	}{
		{engine.RemoteRequest{}, `GET /a auth="" type="" x=[] body=`},
		{engine.RemoteRequest{Method: "POST", Body: []byte(`{"k":1}`)}, `POST /a auth="" type="application/json" x=[] body={"k":1}`},
		{
			engine.RemoteRequest{Method: "POST", Header: map[string][]string{"X-Value": {"1", "2"}, "content-type": {"text/plain"}, "Authorization": {"Bearer own"}}},
			`POST /a auth="Bearer own" type="text/plain" x=["1" "2"] body=`,
		},
	} {
		c.request.URL = server.URL + "/a"
		got, err := fetch(t, &factory.ServiceClient{}, c.request)
		if err != nil || got != c.want {
			t.Errorf("got %s, %v; want %s", got, err, c.want)
		}
	}
}

func TestFetchChecksCertificates(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(echo))
	defer server.Close()
	server.Config.ErrorLog = nil
	if _, err := fetch(t, &factory.ServiceClient{}, engine.RemoteRequest{URL: server.URL}); err == nil {
		t.Error("an untrusted certificate is accepted")
	}
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if _, err := fetch(t, &factory.ServiceClient{}, engine.RemoteRequest{URL: server.URL, CABundle: bundle}); err != nil {
		t.Errorf("with its own caBundle: %v", err)
	}
	if _, err := fetch(t, &factory.ServiceClient{}, engine.RemoteRequest{URL: server.URL, CABundle: []byte("no PEM")}); err == nil {
		t.Error("a caBundle without certificates is accepted")
	}
}

func TestFetchBoundsTheAnswer(t *testing.T) {
	stop := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/large":
			fmt.Fprint(w, strings.Repeat("x", 2<<20+1))
		case "/slow":
			<-stop
		default:
			http.Error(w, strings.Repeat("no such thing ", 100), http.StatusNotFound)
		}
	}))
	defer server.Close()
	defer close(stop)
	c := &factory.ServiceClient{}
	if _, err := fetch(t, c, engine.RemoteRequest{URL: server.URL + "/large"}); err == nil || err.Error() != "the answer has more than 2097152 bytes" {
		t.Errorf("large: %v", err)
	}
	var late net.Error // in the words of the client or of its context, whichever sees it first
	if _, err := fetch(t, &factory.ServiceClient{Timeout: 50 * time.Millisecond}, engine.RemoteRequest{URL: server.URL + "/slow"}); !errors.As(err, &late) || !late.Timeout() {
		t.Errorf("slow: %v", err)
	}
	if _, err := fetch(t, c, engine.RemoteRequest{URL: server.URL + "/absent"}); err == nil || !strings.HasPrefix(err.Error(), "HTTP 404 Not Found: no such thing") {
		t.Errorf("absent: %v", err)
	}
}

func TestFetchKnowsHTTPOnly(t *testing.T) {
	for _, target := range []string{"file:///etc/passwd", "/relative", "ftp://example.com/x", "http://", "http://a b/"} {
		if _, err := fetch(t, &factory.ServiceClient{}, engine.RemoteRequest{URL: target}); err == nil {
			t.Errorf("%s is fetched", target)
		}
	}
}
