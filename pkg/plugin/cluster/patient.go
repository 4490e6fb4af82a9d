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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RetryReads is a transport that reads again where the server is busy, fails, or
// breaks off in the middle of its answer: a run over many objects must not end at
// the first of these. Everything but reads it passes on as it is. A server that
// cannot be reached at all is not waited for: the address is wrong more often than
// the server is about to come up.
func RetryReads(next http.RoundTripper) http.RoundTripper {
	return patientReads{next, RetryPolicy{Tries: readTries}}
}

// readTries are over within a second: a run begins with many reads, and an
// aggregated API whose own server is down, as it often is, must not hold it up.
const readTries = 5

type patientReads struct {
	next  http.RoundTripper
	retry RetryPolicy
}

// impatient marks the context of a request that somebody else repeats.
type impatient struct{}

// RoundTrip returns the last answer, whole, when there is none better.
func (t patientReads) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet || r.Context().Value(impatient{}) != nil {
		return t.next.RoundTrip(r)
	}
	var answer *http.Response
	var last error
	err := t.retry.Do(r.Context(), func() error {
		answer, last = whole(t.next.RoundTrip(r))
		return worthWaiting(r, answer, last)
	})
	if answer != nil && err != nil {
		answer.Header.Del("Retry-After") // it has been honoured: client-go would begin all over
	}
	return answer, last
}

// WrappedRoundTripper lets client-go find the transport below.
func (t patientReads) WrappedRoundTripper() http.RoundTripper { return t.next }

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

// worthWaiting is the error of a try as a retry.Policy reads it; nil ends the tries.
func worthWaiting(r *http.Request, answer *http.Response, err error) error {
	var network *net.OpError
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &network) && network.Op == "dial", errors.As(err, &untrusted):
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

// WithoutRetry marks the context of a read that PatientReads is not to make again.
func WithoutRetry(ctx context.Context) context.Context {
	return context.WithValue(ctx, impatient{}, true)
}
