package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"time"
)

// MaxBytes is the maximum size of a response in bytes, after decompression.
const MaxBytes = 128 << 20

// maxSilence is the maximum pause within a response. API servers end requests themselves after a minute, and
// send the bookmarks of a watch as often.
const maxSilence = 90 * time.Second

// LimitError reports a response that reached a limit: the outcome of its request is unknown, and a retry
// would reach the limit again.
type LimitError struct {
	Answer string // "the answer of https://10.0.0.1:6443 to GET /api/v1/pods"
	Limit  string // "was given up: nothing came for 1m30s"
	Large  bool   // it is too large to be read
}

// Error names the answer and the limit.
func (e *LimitError) Error() string { return e.Answer + " " + e.Limit }

// IsLimit reports whether an error wraps a *LimitError.
func IsLimit(err error) bool {
	var reached *LimitError
	return errors.As(err, &reached)
}

// IsTooLarge reports whether an error wraps a *LimitError for the size.
func IsTooLarge(err error) bool {
	var reached *LimitError
	return errors.As(err, &reached) && reached.Large
}

// Cause returns this package's error from that of an HTTP client, which adds the URL with its query; any
// other error unchanged.
func Cause(err error) error {
	var reached *LimitError
	var redirect *RedirectError
	switch {
	case errors.As(err, &reached):
		return reached
	case errors.As(err, &redirect):
		return redirect
	}
	return err
}

// watchKey marks the context of a watch.
type watchKey struct{}

// ForWatch returns a context for a watch request, whose response has no end.
func ForWatch(ctx context.Context) context.Context { return context.WithValue(ctx, watchKey{}, true) }

// Bounded wraps a transport so that a response that pauses too long, or is larger than bytes and not a
// watch, is a *LimitError, for the size with an advice.
func Bounded(bytes int64, advice string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return bounded{bytes, advice, maxSilence, next} }
}

type bounded struct {
	bytes   int64
	advice  string
	silence time.Duration
	next    http.RoundTripper
}

// RoundTrip sends the request and returns a response whose body enforces the limits.
func (t bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	b := &body{silence: t.silence, ctx: ctx, cancel: cancel, left: math.MaxInt64}
	b.timer = time.AfterFunc(t.silence, func() {
		cancel(&LimitError{Answer: describe(r), Limit: fmt.Sprintf("was given up: nothing came for %s", t.silence)})
	})
	response, err := t.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		defer b.end()
		return nil, b.reason(err)
	}
	b.timer.Stop() // until somebody reads
	b.ReadCloser, response.Body = response.Body, b
	if r.Context().Value(watchKey{}) == nil {
		b.left, b.large = t.bytes, &LimitError{describe(r), fmt.Sprintf("is not read: it has more than %d MiB%s",
			t.bytes>>20, t.advice), true}
	}
	return response, nil
}

// body is a response body that fails when it is too large, and ends after a pause that is too long.
type body struct {
	io.ReadCloser
	left    int64 // bytes
	large   error
	silence time.Duration
	timer   *time.Timer
	ctx     context.Context // of the request
	cancel  context.CancelCauseFunc
}

// Read implements io.Reader within the limits.
func (b *body) Read(p []byte) (int, error) {
	b.timer.Reset(b.silence)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	if b.left -= int64(n); b.left < 0 {
		return 0, b.large
	}
	return n, b.reason(err)
}

// Close also ends the request.
func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

func (b *body) end() {
	b.timer.Stop()
	b.cancel(context.Canceled)
}

// reason returns the *LimitError that ended the request, or err.
func (b *body) reason(err error) error {
	var slow *LimitError
	if err != nil && !errors.Is(err, io.EOF) && errors.As(context.Cause(b.ctx), &slow) {
		return slow
	}
	return err
}

// describe names a response by its request, without the query.
func describe(r *http.Request) string {
	return "the answer of " + server(r.URL) + " to " + r.Method + " " + r.URL.EscapedPath()
}
