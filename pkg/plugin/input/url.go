package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

const fetchTimeout = 30 * time.Second

// fetch reads a URL with a client of its own, which knows no credentials, keeps
// no cookies and does not leave the host that was typed.
func fetch(ctx context.Context, address string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("invalid URL")
	}
	response, err := transport.NewClient(nil, fetchTimeout).Do(request)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err // without the URL, which may have a password
		}
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close() //nolint:errcheck // nothing of it was read
		return nil, fmt.Errorf("the server answered %s", response.Status)
	}
	return response.Body, nil
}

// redacted is the URL as it may be shown: without credentials.
func redacted(address string) string {
	if _, err := url.Parse(address); err != nil {
		return "the URL"
	}
	return redact.URL(address)
}
