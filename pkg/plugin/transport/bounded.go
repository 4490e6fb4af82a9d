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

// MaxBytes is how many bytes an answer may have, after decompression.
const MaxBytes = 128 << 20

// maxSilence is how long nothing may come of an answer. API servers end requests themselves after a
// minute, and send a bookmark of a watch as often.
const maxSilence = 90 * time.Second

// LimitError reports an answer that reached a limit: what became of its request is open, and the next try
// would be answered alike.
type LimitError struct {
	Answer string // "the answer of https://10.0.0.1:6443 to GET /api/v1/pods"
	Limit  string // "was given up: nothing came for 1m30s"
	Large  bool   // it is too large to be read
}

// Error names the answer and the limit.
func (e *LimitError) Error() string { return e.Answer + " " + e.Limit }

// IsLimit reports whether an error says that an answer reached a limit.
func IsLimit(err error) bool {
	var reached *LimitError
	return errors.As(err, &reached)
}

// IsTooLarge reports whether an error says that an answer is too large.
func IsTooLarge(err error) bool {
	var reached *LimitError
	return errors.As(err, &reached) && reached.Large
}

// Cause returns the error of this package in an error of an HTTP client, which puts the URL
// around it, with its query; any other error as it is.
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

// watchKey is the key of the mark of a watch.
type watchKey struct{}

// ForWatch returns a context for a request that asks for a watch, whose answer has no end.
func ForWatch(ctx context.Context) context.Context { return context.WithValue(ctx, watchKey{}, true) }

// Bounded wraps a transport so that an answer with more bytes, unless it is that of a watch, and one of which
// nothing comes for a while, is a *LimitError, the first with an advice.
func Bounded(bytes int64, advice string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return bounded{bytes, advice, maxSilence, next} }
}

type bounded struct {
	bytes   int64
	advice  string
	silence time.Duration
	next    http.RoundTripper
}

// RoundTrip sends the request and returns an answer whose body keeps to the limits.
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

// body is the body of an answer that ends when nothing more comes, and fails, rather than ends, where it is
// too large.
type body struct {
	io.ReadCloser
	left    int64 // bytes
	large   error
	silence time.Duration
	timer   *time.Timer
	ctx     context.Context // of the request
	cancel  context.CancelCauseFunc
}

// Read reads on as long as the limits allow.
func (b *body) Read(p []byte) (int, error) {
	b.timer.Reset(b.silence)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	if b.left -= int64(n); b.left < 0 {
		return 0, b.large
	}
	return n, b.reason(err)
}

// Close ends the request, too.
func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

func (b *body) end() {
	b.timer.Stop()
	b.cancel(context.Canceled)
}

// reason returns the *LimitError that ended the request, or the error that its reader got.
func (b *body) reason(err error) error {
	var slow *LimitError
	if err != nil && !errors.Is(err, io.EOF) && errors.As(context.Cause(b.ctx), &slow) {
		return slow
	}
	return err
}

// describe names an answer, without the query of its request.
func describe(r *http.Request) string {
	return "the answer of " + server(r.URL) + " to " + r.Method + " " + r.URL.EscapedPath()
}
