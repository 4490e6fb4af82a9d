package factory

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// The limits of a lookup, and of each of its responses.
const (
	defaultRegistryTimeout = 30 * time.Second
	maxRegistryAnswer      = 8 << 20
)

// RegistryClient looks images up. The zero value is ready; it is safe for concurrent use.
type RegistryClient struct {
	UserAgent string
	Timeout   time.Duration     // of one lookup; 0 is 30 seconds
	Keychain  authn.Keychain    // nil for the user's docker configuration
	below     http.RoundTripper // nil for go-containerregistry's default
}

var _ engine.ImageRegistry = (*RegistryClient)(nil)

// Image resolves a reference as Kyverno does (pkg/engine/adapters/rclient.go). Manifests come as the
// registry holds them, with unknown fields. For an index, the image is that for linux/amd64.
func (c *RegistryClient) Image(ctx context.Context, reference string) (engine.Image, error) {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return engine.Image{}, err
	}
	timeout := cmp.Or(c.Timeout, defaultRegistryTimeout)
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	image, err := c.image(within, ref)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		err = &transport.LimitError{
			Answer: "the answer of " + ref.Context().RegistryStr(),
			Limit:  fmt.Sprintf("was given up: it takes longer than %s", timeout),
		}
	}
	return image, err
}

func (c *RegistryClient) image(ctx context.Context, ref name.Reference) (engine.Image, error) {
	keychain := cmp.Or[authn.Keychain](c.Keychain, authn.DefaultKeychain)
	found, err := remote.Get(ref, remote.WithContext(ctx), remote.WithAuthFromKeychain(keychain),
		remote.WithUserAgent(c.UserAgent),
		remote.WithTransport(c.lookups()))
	if err != nil {
		return engine.Image{}, err
	}
	image, err := found.Image()
	if err != nil {
		return engine.Image{}, err
	}
	out := engine.Image{
		Registry: ref.Context().RegistryStr(), Repository: ref.Context().RepositoryStr(),
		Identifier: ref.Identifier(),
		Resolved:   ref.Context().Name() + "@" + found.Digest.String(),
	}
	if found.MediaType.IsIndex() {
		out.ManifestList = found.Manifest
	}
	if out.Manifest, err = image.RawManifest(); err != nil {
		return engine.Image{}, err
	}
	out.Config, err = image.RawConfigFile()
	return out, err
}

// lookups returns the transport of lookups. Registries keep blobs elsewhere, and a read of one may be
// redirected there. That is safe whatever host a registry names: go-containerregistry adds credentials only
// to requests to the registry; nothing is sent before the host has proved its name by a certificate, so that
// a redirect cannot reach a private network; and the response is limited and must have the requested digest.
func (c *RegistryClient) lookups() http.RoundTripper {
	below := cmp.Or(c.below, remote.DefaultTransport)
	return transport.Redirects{Elsewhere: isStorage}.Bound(transport.Bounded(maxRegistryAnswer, "")(below))
}

// isStorage reports whether a registry may redirect the read of a blob to a URL: on a named host, over
// https, at its usual port.
func isStorage(r *http.Request, to *url.URL) bool {
	_, digest, _ := strings.Cut(r.URL.Path, "/blobs/")
	return strings.HasPrefix(digest, "sha256:") && r.URL.Scheme == "https" && to.Scheme == "https" &&
		(to.Port() == "" || to.Port() == "443") && net.ParseIP(to.Hostname()) == nil && to.User == nil
}
