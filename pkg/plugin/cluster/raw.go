package cluster

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

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
	err = Retry(ctx, readBackoff(), func() (err error) { // a review, which stores nothing
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
