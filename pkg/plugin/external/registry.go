package external

import (
	"context"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// defaultRegistryTimeout bounds one lookup.
const defaultRegistryTimeout = 30 * time.Second

// RegistryClient looks images up. The zero value is ready; it is safe for concurrent use.
type RegistryClient struct {
	UserAgent string
	Timeout   time.Duration  // of one lookup; 0 stands for 30 seconds
	Keychain  authn.Keychain // nil for that of the user's docker configuration
}

var _ engine.ImageRegistry = (*RegistryClient)(nil)

// Image finds what a reference names as Kyverno does
// (pkg/engine/adapters/rclient.go). Manifests come as the registry holds them, with
// fields that this program does not know. Of an index, the image for linux/amd64 is
// looked at.
func (c *RegistryClient) Image(ctx context.Context, reference string) (engine.Image, error) {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return engine.Image{}, err
	}
	timeout := c.Timeout
	if timeout == 0 {
		timeout = defaultRegistryTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	keychain := c.Keychain
	if keychain == nil {
		keychain = authn.DefaultKeychain
	}
	found, err := remote.Get(ref, remote.WithContext(ctx), remote.WithAuthFromKeychain(keychain), remote.WithUserAgent(c.UserAgent))
	if err != nil {
		return engine.Image{}, err
	}
	image, err := found.Image()
	if err != nil {
		return engine.Image{}, err
	}
	out := engine.Image{
		Registry: ref.Context().RegistryStr(), Repository: ref.Context().RepositoryStr(), Identifier: ref.Identifier(),
		Resolved: ref.Context().Name() + "@" + found.Digest.String(),
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
