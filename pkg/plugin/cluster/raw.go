package cluster

import (
	"context"
	"net/http"
	"net/url"
	"path"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

var _ engine.RawReader = (*Client)(nil)

// Raw sends a request to a path that a policy chose, and returns the body of the
// answer. Whatever the Client may do otherwise, a policy may only read, and ask
// what somebody may do: any other method, another host, logs, tokens and the
// paths that run commands or open tunnels are a *RefusedError.
func (c *Client) Raw(ctx context.Context, method, target string, body []byte) ([]byte, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	apiPath := path.Clean("/" + u.Path)
	reads := method == http.MethodGet && !acts(apiPath) && subresourceOf(apiPath) != "log"
	asks := method == http.MethodPost && isAccessReview(apiPath)
	if u.Host != "" || u.Scheme != "" || (!reads && !asks) {
		return nil, &RefusedError{Method: method, Path: target}
	}
	request := c.rest.Verb(method).AbsPath(apiPath)
	for name, values := range u.Query() {
		for _, value := range values {
			request.Param(name, value)
		}
	}
	if asks {
		request.Body(body).SetHeader("Content-Type", "application/json")
	}
	return do(ctx, request)
}
