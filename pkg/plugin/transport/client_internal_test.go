package transport

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The time of a request goes on where it is redirected.
func TestRedirectsTakeNoMoreTime(t *testing.T) {
	var ends []time.Time
	client := &http.Client{Transport: timed{roundTripFunc(func(r *http.Request) (*http.Response, error) {
		end, _ := r.Context().Deadline()
		ends = append(ends, end)
		status := http.StatusOK
		if len(ends) < 4 {
			status = http.StatusFound
		}
		return &http.Response{StatusCode: status, Header: http.Header{"Location": {"/next"}}, Body: http.NoBody, Request: r}, nil
	}), time.Hour}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://server/first", strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // there is none
	if len(ends) != 4 || ends[0].IsZero() || ends[0] != ends[3] {
		t.Errorf("the requests end at %v", ends)
	}
}
