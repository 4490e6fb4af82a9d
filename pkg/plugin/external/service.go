package external

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// The bounds of a call; the size is that of Kyverno's own (maxAPICallResponseLength).
const (
	defaultServiceTimeout = 30 * time.Second
	maxAnswer             = 2 << 20
	maxQuoted             = 512 // bytes of an answer that an error quotes
)

// ServiceClient makes calls. The zero value is ready; it is safe for concurrent use.
type ServiceClient struct {
	Timeout time.Duration // of a whole call; 0 stands for 30 seconds
}

var _ engine.Fetcher = (*ServiceClient)(nil)

// StatusError is an answer whose status is not 2xx.
type StatusError struct{ Status, Body string }

// Error gives the status and the beginning of the body.
func (e *StatusError) Error() string {
	if e.Body == "" {
		return "HTTP " + e.Status
	}
	return fmt.Sprintf("HTTP %s: %s", e.Status, e.Body)
}

// Fetch implements engine.Fetcher for http and https. The error is a *StatusError
// or the reason why there was no answer.
func (c *ServiceClient) Fetch(ctx context.Context, r engine.RemoteRequest) ([]byte, error) {
	roots, err := rootsOf(r.CABundle)
	if err != nil {
		return nil, err
	}
	request, err := newRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	response, err := transport.NewClient(roots, cmp.Or(c.Timeout, defaultServiceTimeout)).Do(request)
	if err != nil {
		return nil, transport.Cause(err)
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	return read(response)
}

func newRequest(ctx context.Context, r engine.RemoteRequest) (*http.Request, error) {
	u, err := url.Parse(r.URL)
	switch {
	case err != nil:
		return nil, err
	case (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		return nil, fmt.Errorf("%q is no http or https URL", r.URL)
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	for name, values := range r.Header {
		for _, value := range values {
			request.Header.Add(name, value)
		}
	}
	if r.Method == http.MethodPost && request.Header.Get("Content-Type") == "" {
		request.Header.Set("Content-Type", "application/json")
	}
	return request, nil
}

// rootsOf returns the certificates of a bundle; nil, which is the system's own, for none.
func rootsOf(bundle []byte) (*x509.CertPool, error) {
	if len(bundle) == 0 {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle) {
		return nil, errors.New("caBundle holds no PEM certificate")
	}
	return pool, nil
}

func read(response *http.Response) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if response.StatusCode < 200 || response.StatusCode > 299 {
		quoted := body[:min(len(body), maxQuoted)]
		return nil, &StatusError{Status: response.Status, Body: string(bytes.TrimSpace(quoted))}
	}
	if len(body) > maxAnswer {
		return nil, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	return body, err
}
