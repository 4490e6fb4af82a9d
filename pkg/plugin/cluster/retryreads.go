package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// RetryReads is a transport that repeats a read if the server is busy, fails, or
// breaks off in the middle of its answer: a run over many objects must not end at
// the first of these. All other requests are passed on. A server that cannot be
// reached at all is not waited for: the address is wrong more often than the server
// is about to come up.
//
// It is a transport because discovery and schemas are read by client-go's own
// clients. The attempts are over within a second: a run begins with many reads, and
// an aggregated API whose server is down must not hold it up.
//
// A server that has never answered, and does not until the time of a read is over, fails all further reads: discovery
// alone has many, each with its own time.
func RetryReads(next http.RoundTripper) http.RoundTripper {
	return &retryingReads{next: next, backoff: readBackoff()}
}

// readBackoff is over within a second.
func readBackoff() wait.Backoff {
	b := DefaultBackoff()
	b.Steps = 5
	return b
}

type retryingReads struct {
	next             http.RoundTripper
	backoff          wait.Backoff
	answered, silent atomic.Bool
}

// errSilent is the error of a read from a server that has never answered.
var errSilent = errors.New("the server does not answer")

// send sends a request, unless the server is silent.
func (t *retryingReads) send(r *http.Request) (*http.Response, error) {
	if t.silent.Load() && !t.answered.Load() {
		return nil, errSilent
	}
	answer, err := t.next.RoundTrip(r)
	if err == nil {
		t.answered.Store(true)
	} else if errors.Is(r.Context().Err(), context.DeadlineExceeded) {
		t.silent.Store(true)
	}
	return answer, err
}

// noRetry marks the context of a read that its caller repeats.
type noRetry struct{}

func withoutRetry(ctx context.Context) context.Context {
	return context.WithValue(ctx, noRetry{}, true)
}

// RoundTrip returns the last answer, read to its end.
func (t *retryingReads) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case r.Method != http.MethodGet:
		return t.next.RoundTrip(r)
	case r.Context().Value(noRetry{}) != nil:
		return t.once(r)
	}
	var answer *http.Response
	var last error
	err := Retry(r.Context(), t.backoff, func() error {
		answer, last = whole(t.send(r))
		return failure(r, answer, last)
	})
	if answer != nil && err != nil {
		answer.Header.Del("Retry-After") // it was honoured; client-go would begin again
	}
	if last != nil && r.Context().Err() == nil && beginsAgain(last) {
		last = errBrokenOff
	}
	return answer, last
}

// errBrokenOff takes the place of an error after which client-go would begin again, as it knows by
// type or text. It is what is left when all attempts were made.
var errBrokenOff = errors.New("the server broke off the connection, again and again")

// beginsAgain reports whether client-go would repeat a read after an error.
func beginsAgain(err error) bool {
	return utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}

// once sends a read that its caller repeats. An answer with a Retry-After is an error:
// client-go would wait for it and begin again, for as long as the server likes.
func (t *retryingReads) once(r *http.Request) (*http.Response, error) {
	answer, err := t.send(r)
	if err != nil || answer.Header.Get("Retry-After") == "" {
		return answer, err
	}
	if err := failure(r, answer, nil); err != nil {
		_ = answer.Body.Close() // it is not read
		return nil, err
	}
	return answer, nil
}

// WrappedRoundTripper lets client-go find the transport below.
func (t *retryingReads) WrappedRoundTripper() http.RoundTripper { return t.next }

// whole reads an answer to its end, so that one that is cut short is an error.
func whole(answer *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	if closed := answer.Body.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, nil
}

// failure is the error of an attempt as Retry reads it; nil where no other attempt is
// to be made.
func failure(r *http.Request, answer *http.Response, err error) error {
	var network *net.OpError
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &network) && network.Op == "dial", errors.As(err, &untrusted), errors.Is(err, errSilent), transport.IsLimit(err):
		return nil
	case err != nil:
		return &url.Error{Op: r.Method, URL: r.URL.String(), Err: err}
	case answer.StatusCode == http.StatusTooManyRequests, answer.StatusCode >= http.StatusInternalServerError:
		seconds, err := strconv.Atoi(answer.Header.Get("Retry-After"))
		if err != nil {
			seconds = 0 // none, or a date, which API servers do not send
		}
		return apierrors.NewGenericServerResponse(answer.StatusCode, r.Method, schema.GroupResource{}, "", "", seconds, true)
	}
	return nil
}
