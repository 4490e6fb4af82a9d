package cluster

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"k8s.io/client-go/rest"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// The settings of a user of the auth provider oidc, as client-go names them
// (plugin/pkg/client/auth/oidc).
const (
	oidcProvider = "oidc"

	oidcIssuer       = "idp-issuer-url"
	oidcClientID     = "client-id"
	oidcClientSecret = "client-secret" //nolint:gosec // the name of a setting
	oidcCAFile       = "idp-certificate-authority"
	oidcCAData       = "idp-certificate-authority-data"
	oidcIDToken      = "id-token"
	oidcRefreshToken = "refresh-token"
)

// The bounds of a refresh. A token is refreshed some seconds before it expires.
const (
	oidcTimeout = 30 * time.Second
	oidcEarly   = 10 * time.Second
	maxMetadata = 1 << 20 // bytes
)

// Logins refresh the tokens of users of the auth provider oidc. They take the place of client-go's
// own, whose HTTP client follows redirects and takes the refresh token along. The zero value is
// ready; all configs of one process share it, since a refresh token may be good for one use.
type Logins struct {
	mu    sync.Mutex
	users map[[2]string]*oidcLogin // by issuer and client
}

// bind replaces the auth provider of a config.
func (l *Logins) bind(config *rest.Config) {
	p := config.AuthProvider
	if p == nil || p.Name != oidcProvider {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := [2]string{p.Config[oidcIssuer], p.Config[oidcClientID]}
	login := l.users[key]
	if login == nil {
		login = &oidcLogin{settings: maps.Clone(p.Config), persister: config.AuthConfigPersister}
		if l.users == nil {
			l.users = map[[2]string]*oidcLogin{}
		}
		l.users[key] = login
	}
	config.AuthProvider, config.AuthConfigPersister = nil, nil
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return oidcTransport{login, next} })
}

type oidcTransport struct {
	login *oidcLogin
	next  http.RoundTripper
}

// RoundTrip sends a request with the user's token.
func (t oidcTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") != "" {
		return t.next.RoundTrip(r)
	}
	token, err := t.login.token(r.Context())
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // a RoundTripper closes it even when it fails
		}
		return nil, fmt.Errorf("auth provider oidc: %w", err)
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return t.next.RoundTrip(r)
}

// WrappedRoundTripper lets client-go find the transport below.
func (t oidcTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// oidcLogin is one user.
type oidcLogin struct {
	mu        sync.Mutex
	settings  map[string]string
	persister rest.AuthProviderConfigPersister // nil where nothing can be stored
}

// token returns the user's token, and refreshes it before it expires.
func (l *oidcLogin) token(ctx context.Context) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if token := l.settings[oidcIDToken]; token != "" {
		expiry, err := expiryOf(token)
		if err != nil {
			return "", err
		}
		if time.Now().Add(oidcEarly).Before(expiry) {
			return token, nil
		}
	}
	for _, name := range []string{oidcIssuer, oidcClientID, oidcRefreshToken} {
		if l.settings[name] == "" {
			return "", fmt.Errorf("%s has expired or is missing, and cannot be refreshed without %s", oidcIDToken, name)
		}
	}
	settings, err := l.refresh(ctx)
	if err != nil {
		return "", fmt.Errorf("refreshing %s: %w", oidcIDToken, transport.Cause(err))
	}
	l.settings = settings
	if l.persister != nil {
		if err := l.persister.Persist(settings); err != nil {
			return "", fmt.Errorf("storing the refreshed %s: %w", oidcIDToken, err)
		}
	}
	return settings[oidcIDToken], nil
}

// refresh returns the settings with a new token.
func (l *oidcLogin) refresh(ctx context.Context) (map[string]string, error) {
	roots, err := l.roots()
	if err != nil {
		return nil, err
	}
	client := transport.NewClient(roots, oidcTimeout)
	endpoint, err := tokenEndpoint(ctx, client, l.settings[oidcIssuer])
	if err != nil {
		return nil, err
	}
	config := oauth2.Config{
		ClientID: l.settings[oidcClientID], ClientSecret: l.settings[oidcClientSecret],
		Endpoint: oauth2.Endpoint{TokenURL: endpoint},
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, client)
	token, err := config.TokenSource(ctx, &oauth2.Token{RefreshToken: l.settings[oidcRefreshToken]}).Token()
	if err != nil {
		return nil, err
	}
	id, _ := token.Extra("id_token").(string)
	if id == "" {
		return nil, errors.New("the answer has no id_token")
	}
	settings := maps.Clone(l.settings)
	settings[oidcIDToken] = id
	if token.RefreshToken != "" {
		settings[oidcRefreshToken] = token.RefreshToken
	}
	return settings, nil
}

// roots returns the certificates that the user trusts for the issuer; nil for those of the system.
func (l *oidcLogin) roots() (*x509.CertPool, error) {
	pem, err := base64.StdEncoding.DecodeString(l.settings[oidcCAData])
	if err == nil && len(pem) == 0 && l.settings[oidcCAFile] != "" {
		pem, err = os.ReadFile(l.settings[oidcCAFile])
	}
	if err != nil || len(pem) == 0 {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("the certificate authority of the issuer is no PEM certificate")
	}
	return pool, nil
}

// tokenEndpoint asks the issuer where tokens are refreshed:
// https://openid.net/specs/openid-connect-discovery-1_0.html#ProviderConfig.
func tokenEndpoint(ctx context.Context, client *http.Client, issuer string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration", nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the issuer answers %s", response.Status)
	}
	var metadata struct {
		Endpoint string `json:"token_endpoint"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxMetadata)).Decode(&metadata); err != nil {
		return "", fmt.Errorf("the issuer's answer: %w", err)
	}
	if metadata.Endpoint == "" {
		return "", errors.New("the issuer names no token_endpoint")
	}
	if strings.HasPrefix(strings.ToLower(issuer), "https:") && !strings.HasPrefix(strings.ToLower(metadata.Endpoint), "https:") {
		return "", errors.New("the issuer's token_endpoint is not https")
	}
	return metadata.Endpoint, nil
}

// expiryOf reads when a JSON Web Token expires. Its signature is for the API server to check.
func expiryOf(token string) (time.Time, error) {
	const parts = 3
	all := strings.Split(token, ".")
	if len(all) != parts {
		return time.Time{}, fmt.Errorf("%s is no JSON Web Token", oidcIDToken)
	}
	var claims struct {
		Expiry float64 `json:"exp"`
	}
	payload, err := base64.RawURLEncoding.DecodeString(all[1])
	if err == nil {
		err = json.Unmarshal(payload, &claims)
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("%s is no JSON Web Token: its claims cannot be read", oidcIDToken)
	}
	return time.Unix(int64(claims.Expiry), 0), nil
}
