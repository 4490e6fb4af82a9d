package cluster

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// A server that says that it has API Priority and Fairness sets the pace, unless the user does.
func TestServerSetsThePace(t *testing.T) {
	for name, c := range map[string]struct {
		fair    bool
		options Options
		want    time.Duration // for ten requests more than the default burst
	}{
		"with API Priority and Fairness":   {fair: true},
		"without it":                       {want: 10 * time.Second / defaultQPS},
		"a limit that is typed":            {fair: true, options: Options{QPS: 1000, Burst: 1}, want: 309 * time.Millisecond},
		"a burst that is typed":            {fair: true, options: Options{Burst: 290}, want: 20 * time.Second / defaultQPS},
		"no limit that is typed, not fair": {options: Options{QPS: -1}},
		"no limit that is typed, and fair": {fair: true, options: Options{QPS: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var waited time.Duration
				c.options.Waiting = func(from, to time.Time) { waited += to.Sub(from) }
				var config rest.Config
				pace(&config, c.options)
				server := config.WrapTransport(answering{fair: c.fair})
				for range defaultBurst + 10 {
					if config.RateLimiter != nil {
						if err := config.RateLimiter.Wait(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					if _, err := server.RoundTrip(&http.Request{}); err != nil {
						t.Fatal(err)
					}
				}
				if waited != c.want {
					t.Errorf("waited %v, want %v", waited, c.want)
				}
			})
		})
	}
}

// answering is a server that takes no time.
type answering struct{ fair bool }

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	header := http.Header{}
	if a.fair {
		header.Set("X-Kubernetes-PF-FlowSchema-UID", "8f8e")
	}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: http.NoBody}, nil
}
