package transport_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// endless repeats a byte for ever.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	return copy(p, bytes.Repeat([]byte{'a'}, len(p))), nil
}

func TestAnswersAreBounded(t *testing.T) {
	next := roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: io.NopCloser(endless{}), Request: r}, nil
	})
	for name, ctx := range map[string]context.Context{"any": t.Context(), "a watch": transport.ForWatch(t.Context())} {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://me:hidden@server:6443/api?token=hidden", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := transport.Bounded(1<<20, "; ask for less")(next).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, io.LimitReader(response.Body, 4<<20))
		want := "the answer of https://server:6443 to GET /api is not read: it has more than 1 MiB; ask for less"
		if watch := name == "a watch"; watch != (err == nil) || !watch && (err.Error() != want || !transport.IsLimit(err)) || watch != (n == 4<<20) {
			t.Errorf("%s: %d bytes, error %v, want %s", name, n, err, want)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
	}
}

// slowly sends a byte whenever some time is over, until the request ends.
func slowly(every time.Duration) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		read, write := io.Pipe()
		go func() {
			for {
				select {
				case <-r.Context().Done():
					_ = write.CloseWithError(r.Context().Err())
					return
				case <-time.After(every):
					if _, err := write.Write([]byte("1")); err != nil {
						return
					}
				}
			}
		}()
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: read}, nil
	})
}

func TestAnswersEndInTime(t *testing.T) {
	silent := roundTripper(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	for name, c := range map[string]struct {
		next http.RoundTripper
		took time.Duration
		want string
	}{
		"no answer":             {silent, 90 * time.Second, "nothing came for 1m30s"},
		"a byte in two minutes": {slowly(2 * time.Minute), 90 * time.Second, "nothing came for 1m30s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				err := read(t.Context(), c.next)
				want := "the answer of https://server to GET /api was given up: " + c.want
				if err == nil || err.Error() != want || time.Since(start) != c.took {
					t.Errorf("after %s: %v, want %s after %s", time.Since(start), err, want, c.took)
				}
			})
		})
	}
}

// TestUsersMayStopAnAnswer has the context's own error.
func TestUsersMayStopAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := read(ctx, slowly(time.Minute)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}

func read(ctx context.Context, next http.RoundTripper) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://server/api?hidden", nil)
	if err != nil {
		return err
	}
	response, err := transport.Bounded(1<<20, "")(next).RoundTrip(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return errors.Join(err, response.Body.Close())
}

func TestCauseIsWithoutTheURL(t *testing.T) {
	for _, err := range []error{
		&transport.RedirectError{From: "https://a", To: "https://b"}, &transport.LimitError{Answer: "a"}, io.EOF,
	} {
		if got := transport.Cause(fmt.Errorf("Get \"https://a/?hidden\": %w", err)); (got == err) == errors.Is(err, io.EOF) { //nolint:errorlint // it is this very one
			t.Errorf("%v became %v", err, got)
		}
	}
}
