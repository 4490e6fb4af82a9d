package transport

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"time"
)

// NewClient returns a client without credentials and cookies, which follows no redirect to another
// server and keeps no connection open. It trusts roots, those of the system if they are nil; a
// request, with the reading of its answer, may take no longer than the timeout.
func NewClient(roots *x509.CertPool, timeout time.Duration) *http.Client {
	below := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
	}
	return &http.Client{Transport: Redirects{}.Bound(below), Timeout: timeout}
}
