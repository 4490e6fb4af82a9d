package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
)

// Limits are the bounds of one answer; a field that is 0 stands for its default, which is
// far beyond what the objects of a cluster need.
type Limits struct {
	// Bytes is how many bytes of a body are read, after decompression.
	Bytes int64
	// Decoded is how many bytes a body may take when it is decoded, as DecodedSize counts.
	Decoded int
	// Header is how long the first byte may take, Idle any other one, and Total all of them.
	Header, Idle, Total time.Duration
	// Advice says what to do about an answer that is too large; it may be empty.
	Advice string
}

// The defaults of Limits. API servers end requests themselves after a minute.
const (
	maxBytes   = 128 << 20
	maxDecoded = 512 << 20
	maxHeader  = 2 * time.Minute
	maxIdle    = 30 * time.Second
	maxTotal   = 10 * time.Minute
	// maxOther is the bytes of a body that does not say that it is JSON: client-go
	// decodes YAML and protobuf as well, and YAML takes much more memory than its text.
	maxOther = 2 << 20
	// maxEvent is the bytes of one event of a watch, several times what a server stores of an object; and
	// maxWatchIdle is how long none comes, where an API server sends a bookmark every minute.
	maxEvent     = 16 << 20
	maxWatchIdle = 90 * time.Second
)

func (l Limits) orDefaults() Limits {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&l.Header, maxHeader}, {&l.Idle, maxIdle}, {&l.Total, maxTotal}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if l.Bytes == 0 {
		l.Bytes = maxBytes
	}
	if l.Decoded == 0 {
		l.Decoded = maxDecoded
	}
	return l
}

// SizeError reports an answer that is too large to be read.
type SizeError struct {
	Answer string // "the answer of https://10.0.0.1:6443 to GET /api/v1/pods"
	Limit  string // "has more than 128 MiB", and what to do
}

// Error names the answer and the limit.
func (e *SizeError) Error() string {
	return e.Answer + " is not read: it " + e.Limit
}

// SlowError reports an answer that did not come, or did not end, in time or over as many connections as a request may use.
type SlowError struct {
	Answer string
	Limit  string // "nothing came for 30s"
}

// Error names the answer and the limit.
func (e *SlowError) Error() string { return e.Answer + " was given up: " + e.Limit }

// IsLimit reports whether an error says that an answer reached a limit: what became of its
// request is open, and the next try would be answered alike.
func IsLimit(err error) bool {
	var size *SizeError
	var slow *SlowError
	return errors.As(err, &size) || errors.As(err, &slow)
}

// Cause returns the error of this package in an error of an HTTP client, which puts the URL
// around it, with its query; any other error as it is.
func Cause(err error) error {
	var redirect *RedirectError
	var size *SizeError
	var slow *SlowError
	switch {
	case errors.As(err, &redirect):
		return redirect
	case errors.As(err, &size):
		return size
	case errors.As(err, &slow):
		return slow
	}
	return err
}

// watchKey is the key of the mark of a watch.
type watchKey struct{}

// ForWatch returns a context for a request that asks for a watch, whose answer is a line for each event. That a URL asks for one is
// not enough: policies choose some of them.
func ForWatch(ctx context.Context) context.Context { return context.WithValue(ctx, watchKey{}, true) }

// IsWatch reports whether a request was made with a context of ForWatch.
func IsWatch(r *http.Request) bool { return r.Context().Value(watchKey{}) != nil }

// Bounded wraps a transport so that each answer ends within limits: with a *SizeError or
// a *SlowError if it does not end by itself. Of a watch the size of each event is bounded. So is
// the number of connections over which a request is sent.
func Bounded(l Limits) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return bounded{l.orDefaults(), connections{next}} }
}

type bounded struct {
	limits Limits
	next   http.RoundTripper
}

// RoundTrip sends the request and returns an answer whose body keeps to the limits.
func (t bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	b := &body{limits: t.limits, answer: describe(r), ctx: ctx}
	if IsWatch(r) {
		b.answer, b.lines = "an event in "+b.answer, true
		b.limits.Bytes, b.limits.Idle = min(b.limits.Bytes, maxEvent), max(b.limits.Idle, maxWatchIdle)
	}
	giveUp := func(after time.Duration, format string) *time.Timer {
		return time.AfterFunc(after, func() { cancel(&SlowError{b.answer, fmt.Sprintf(format, after)}) })
	}
	total := giveUp(t.limits.Total, "it takes longer than %s")
	header := giveUp(t.limits.Header, "nothing came for %s")
	b.idle = giveUp(b.limits.Idle, "nothing more came for %s")
	b.idle.Stop() // until there is a body to wait for
	b.end = func() {
		total.Stop()
		b.idle.Stop()
		cancel(context.Canceled)
	}
	response, err := roundTrip(t.next, r.WithContext(ctx))
	header.Stop()
	if err != nil {
		err = Reason(ctx, err)
		b.end()
		return nil, err
	}
	if !isJSON(response.Header.Get("Content-Type")) {
		b.limits.Bytes = min(b.limits.Bytes, maxOther)
	}
	b.ReadCloser, response.Body = response.Body, b
	refused(response, b)
	return response, nil
}

// WrappedRoundTripper lets client-go find the transport below.
func (t bounded) WrappedRoundTripper() http.RoundTripper { return t.next }

// body is the body of an answer, counted while it is read.
type body struct {
	io.ReadCloser
	limits  Limits
	lines   bool // each line is bounded by itself
	answer  string
	ctx     context.Context // of the request
	idle    *time.Timer
	end     func() // ends the request and its timers
	read    int64
	decoded int
}

// Read reads on as long as the limits allow.
func (b *body) Read(p []byte) (int, error) {
	b.idle.Reset(b.limits.Idle)
	n, err := b.ReadCloser.Read(p)
	b.idle.Stop()
	if large := b.count(p[:n]); large != nil {
		return 0, large
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return n, Reason(b.ctx, err)
	}
	return n, err
}

// count counts what was read: in all, or of each line where that is what is bounded.
func (b *body) count(text []byte) error {
	for b.lines {
		line, rest, ended := bytes.Cut(text, []byte{'\n'})
		if !ended {
			break
		}
		if err := b.add(line); err != nil {
			return err
		}
		b.read, b.decoded, text = 0, 0, rest
	}
	return b.add(text)
}

func (b *body) add(text []byte) error {
	b.read += int64(len(text))
	b.decoded += DecodedSize(text)
	switch {
	case b.read > b.limits.Bytes:
		return &SizeError{b.answer, "has more than " + bytesText(b.limits.Bytes) + b.limits.Advice}
	case b.decoded > b.limits.Decoded:
		return &SizeError{b.answer, "takes more than " + bytesText(int64(b.limits.Decoded)) + " of memory" + b.limits.Advice}
	}
	return nil
}

// Close ends the request, too.
func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}

// isJSON reports whether a body is JSON, which one without a type is taken for.
func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return contentType == "" || err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
}

// maxPath is how much of a path an error shows.
const maxPath = 300

// describe names an answer, without the query of its request.
func describe(r *http.Request) string {
	return "the answer of " + server(r.URL) + " to " + r.Method + " " + cut(r.URL.EscapedPath(), maxPath)
}

func cut(text string, limit int) string {
	if len(text) > limit {
		return text[:limit] + "..."
	}
	return text
}

func bytesText(n int64) string {
	if n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}
