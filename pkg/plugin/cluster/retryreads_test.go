package cluster

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func responseOf(code int, body io.Reader) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{"Retry-After": {"3"}}, Body: io.NopCloser(body)}
}

func TestRetryReads(t *testing.T) {
	cut := func() *http.Response {
		return responseOf(200, io.MultiReader(strings.NewReader("half"), iotest.ErrReader(io.ErrUnexpectedEOF)))
	}
	refuse := func(code int) func() *http.Response {
		return func() *http.Response { return responseOf(code, http.NoBody) }
	}
	for name, c := range map[string]struct {
		method string
		first  func() *http.Response // to the first two requests
		calls  int
		waited time.Duration // at least
		want   string
	}{
		"an answer that is cut short": {http.MethodGet, cut, 3, 1, "whole"},
		"a server that fails":         {http.MethodGet, refuse(500), 3, 6 * time.Second, "whole"},
		"a server that is busy":       {http.MethodGet, refuse(429), 3, 6 * time.Second, "whole"},
		"an answer":                   {http.MethodGet, refuse(404), 1, 0, ""},
		"a write":                     {http.MethodPatch, refuse(503), 1, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls, start := 0, time.Now()
				reads := RetryReads(roundTripper(func(*http.Request) (*http.Response, error) {
					if calls++; calls < 3 {
						return c.first(), nil
					}
					return responseOf(200, strings.NewReader("whole")), nil
				}))
				r, err := http.NewRequestWithContext(t.Context(), c.method, "https://server/api", nil)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := reads.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				defer answer.Body.Close() //nolint:errcheck // it is in memory
				body, err := io.ReadAll(answer.Body)
				if waited := time.Since(start); err != nil || string(body) != c.want || calls != c.calls || waited < c.waited {
					t.Errorf("%q, %v after %d calls and %s", body, err, calls, waited)
				}
			})
		})
	}
}

func TestRetryReadsDoesNotWaitForAServerThatIsNotThere(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	reads := &retryingReads{next: http.DefaultTransport, backoff: wait.Backoff{Duration: time.Hour, Steps: 5}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := reads.RoundTrip(r); err == nil {
		t.Errorf("got %v", answer)
	}
}

// A server that takes requests and never answers is given up once, and not anew for each read.
func TestRetryReadsGivesUpASilentServer(t *testing.T) {
	for name, c := range map[string]struct {
		answers int // before it is silent
		calls   int
		waited  time.Duration
	}{
		"never answered": {0, 1, time.Minute},
		"answered once":  {1, 4, 3 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls, start := 0, time.Now()
				reads := RetryReads(roundTripper(func(r *http.Request) (*http.Response, error) {
					if calls++; calls <= c.answers {
						return responseOf(200, http.NoBody), nil
					}
					<-r.Context().Done()
					return nil, r.Context().Err()
				}))
				for range c.answers + 3 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://server/api", nil)
					if err != nil {
						t.Fatal(err)
					}
					_, _ = reads.RoundTrip(r) //nolint:bodyclose // there is none
					cancel()
				}
				if waited := time.Since(start); calls != c.calls || waited != c.waited {
					t.Errorf("%d requests in %v, want %d in %v", calls, waited, c.calls, c.waited)
				}
			})
		})
	}
}
