// This file calls web services for policies, if a flag allows it. It never sends the credentials of the
// kubeconfig.

package factory

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
	"strings"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// The limits of a call; the size is Kyverno's own (maxAPICallResponseLength).
const (
	defaultServiceTimeout = 30 * time.Second
	maxAnswer             = 2 << 20
	maxQuoted             = 512 // bytes of a response that an error quotes
)

// ServiceClient makes calls. The zero value is ready; it is safe for concurrent use.
type ServiceClient struct {
	Timeout time.Duration // of a whole call; 0 is 30 seconds
}

var _ engine.Fetcher = (*ServiceClient)(nil)

// Fetch implements engine.Fetcher for http and https. A status other than 2xx is an error with the beginning
// of the response.
func (c *ServiceClient) Fetch(ctx context.Context, r engine.RemoteRequest) ([]byte, error) {
	var roots *x509.CertPool // the system's own
	if len(r.CABundle) > 0 {
		if roots = x509.NewCertPool(); !roots.AppendCertsFromPEM(r.CABundle) {
			return nil, errors.New("caBundle holds no PEM certificate")
		}
	}
	u, err := url.Parse(r.URL)
	switch {
	case err != nil:
		return nil, err
	case (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		return nil, fmt.Errorf("%q is not a valid http or https URL", r.URL)
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	for name, values := range r.Header {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	if r.Method == http.MethodPost && request.Header.Get("Content-Type") == "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := transport.NewClient(roots, cmp.Or(c.Timeout, defaultServiceTimeout)).Do(request)
	if err != nil {
		return nil, transport.Cause(err)
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	return read(response)
}

func read(response *http.Response) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if response.StatusCode < 200 || response.StatusCode > 299 {
		quoted := bytes.TrimSpace(body[:min(len(body), maxQuoted)])
		return nil, errors.New(strings.TrimSuffix(fmt.Sprintf("HTTP %s: %s", response.Status, quoted), ": "))
	}
	if len(body) > maxAnswer {
		return nil, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	return body, err
}
