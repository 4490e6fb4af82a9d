package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// RefusedError reports a request that was not sent: one that may write, where
// nothing may be written, or one that a policy may not make.
type RefusedError struct{ Method, Path string }

// Error names the request.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s %s refused: only reads, access reviews and dry runs are allowed here", e.Method, e.Path)
}

// readOnlyTransport passes on only requests that cannot change anything.
type readOnlyTransport struct {
	prefix string // the path under which a proxy serves the API server
	// but are resources of which objects may be written all the same; none for a preview itself.
	but  []schema.GroupResource
	next http.RoundTripper
}

// ReadOnlyBut wraps a transport so that it refuses every request that may write, but for those that patch or delete a
// single object of some resources. Prefix is the path under which a proxy serves the API server.
func ReadOnlyBut(prefix string, but []schema.GroupResource) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return readOnlyTransport{prefix, but, next} }
}

// RoundTrip refuses requests that could write, before they are sent.
func (t readOnlyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if path := strings.TrimPrefix(r.URL.Path, t.prefix); !onlyReads(r, path) && !t.writes(r, path) {
		if r.Body != nil {
			_ = r.Body.Close() // a RoundTripper closes the body even when it fails; nothing was read from it
		}
		return nil, &RefusedError{Method: r.Method, Path: r.URL.Path}
	}
	return t.next.RoundTrip(r)
}

// writes reports whether a request writes one object of the resources that may be written.
func (t readOnlyTransport) writes(r *http.Request, apiPath string) bool {
	p := engine.NewAPIPath(apiPath)
	return (r.Method == http.MethodPatch || r.Method == http.MethodDelete) && p.Name != "" && p.Subresource == "" && p.Clean == apiPath &&
		slices.Contains(t.but, schema.GroupResource{Group: p.Group, Resource: p.Resource})
}

// WrappedRoundTripper lets client-go find the transport below.
func (t readOnlyTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

func onlyReads(r *http.Request, apiPath string) bool {
	p := engine.NewAPIPath(apiPath)
	if p.HasSideEffects() {
		return false
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return true
	case http.MethodPost:
		return p.IsReview() || isDryRun(r)
	default:
		return isDryRun(r)
	}
}

// isDryRun reports whether dryRun=All is the only value in the query: what a server does with
// two contradicting values is not known.
func isDryRun(r *http.Request) bool {
	return slices.Equal(r.URL.Query()["dryRun"], []string{"All"})
}

var _ engine.RawReader = (*Client)(nil)

// Raw sends a request to a path that a policy chose, and returns the body of the answer. A policy
// may only read and review access, whatever the Client may do: any other method, another host,
// logs, tokens and the paths that run commands or open tunnels are a *RefusedError. Where no answer of the
// server comes, that is an *engine.UnreadableError: the rule would not fail on a server.
func (c *Client) Raw(ctx context.Context, method, target string, body []byte) ([]byte, error) {
	p, err := engine.ParseAPIPath(target)
	if err != nil || p.Refusal(method) != "" {
		return nil, &RefusedError{Method: method, Path: target}
	}
	request := c.rest.Verb(method).AbsPath(p.Clean)
	for name, values := range p.Query {
		for _, value := range values {
			request.Param(name, value)
		}
	}
	if method != http.MethodPost {
		answer, err := do(ctx, method, request)
		return answer, unanswered(method, p.Clean, err)
	}
	request.Body(body).SetHeader("Content-Type", "application/json")
	var answer []byte
	err = Retry(ctx, readBackoff(), nil, func() (err error) { // a review, which stores nothing
		answer, err = do(ctx, method, request)
		return err
	})
	return answer, unanswered(method, p.Clean, err)
}

// unanswered marks an error that is not an answer of the server.
func unanswered(method, path string, err error) error {
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) {
		return err
	}
	return &engine.UnreadableError{What: "the answer to " + method + " " + path, Err: err}
}
