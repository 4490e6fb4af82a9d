package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestReadsArePatient(t *testing.T) {
	cut := func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "half")
	}
	refuse := func(code int) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { w.Header().Set("Retry-After", "3"); w.WriteHeader(code) }
	}
	for name, c := range map[string]struct {
		method string
		once   bool
		first  func(http.ResponseWriter) // the answer to the first two requests
		calls  int
		waited time.Duration // at least
		want   string
	}{
		"an answer that is cut short":    {http.MethodGet, false, cut, 3, 1, "whole"},
		"a server that fails":            {http.MethodGet, false, refuse(500), 3, 6 * time.Second, "whole"},
		"a server that is busy":          {http.MethodGet, false, refuse(429), 3, 6 * time.Second, "whole"},
		"an answer":                      {http.MethodGet, false, refuse(404), 1, 0, ""},
		"a write":                        {http.MethodPatch, false, refuse(503), 1, 0, ""},
		"a read that somebody else does": {http.MethodGet, true, refuse(503), 1, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if calls++; calls < 3 {
					c.first(w)
					return
				}
				fmt.Fprint(w, "whole")
			}))
			defer server.Close()
			var waited time.Duration
			transport := patientReads{http.DefaultTransport, RetryPolicy{
				Sleep: func(ctx context.Context, d time.Duration) error { waited += d; return ctx.Err() },
			}}
			ctx := t.Context()
			if c.once {
				ctx = WithoutRetry(ctx)
			}
			r, err := http.NewRequestWithContext(ctx, c.method, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := transport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close() //nolint:errcheck // it is in memory
			body, err := io.ReadAll(answer.Body)
			if err != nil || string(body) != c.want || calls != c.calls || waited < c.waited {
				t.Errorf("%q, %v after %d calls and %s", body, err, calls, waited)
			}
		})
	}
}

func TestAServerThatIsNotThereIsNotWaitedFor(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	transport := patientReads{http.DefaultTransport, RetryPolicy{
		Sleep: func(context.Context, time.Duration) error { return errors.New("it waits") },
	}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := transport.RoundTrip(r); err == nil || err.Error() == "it waits" {
		t.Errorf("%v, %v", answer, err)
	}
}
