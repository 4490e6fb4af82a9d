package engine

import (
	"context"
	"fmt"
)

// Fetcher reaches web services beyond the API server; it exists only when a flag
// allows it. It never sends the user's cluster credentials.
type Fetcher interface {
	// Fetch returns the body of an answer with a 2xx status, of which there is a
	// limit to the size. Any other answer is an error.
	Fetch(context.Context, RemoteRequest) ([]byte, error)
}

// RemoteRequest is a request to a web service that a policy names.
type RemoteRequest struct {
	Method, URL string
	Header      map[string][]string
	Body        []byte
	// CABundle holds the PEM certificates that the service's own is checked
	// with; empty for those that the system trusts.
	CABundle []byte
}

// ImageRegistry looks images up in their registries; it exists only when a flag
// allows it.
type ImageRegistry interface {
	// Image looks up a reference such as "nginx" or "ghcr.io/org/app:v1" names.
	Image(ctx context.Context, reference string) (Image, error)
}

// Image is what a registry says about a reference.
type Image struct {
	Registry, Repository string
	Identifier           string // the tag or the digest
	Resolved             string // "REGISTRY/REPOSITORY@sha256:..."
	// ManifestList is the index that the reference names, nil where it names one
	// image alone. Manifest and Config belong to the image for linux/amd64. All
	// are JSON, as the registry holds it.
	ManifestList, Manifest, Config []byte
}

// UnansweredError is a request that only a live API server could answer.
type UnansweredError struct {
	Method, Path string
	Reason       string
}

// Error names the request and the reason.
func (e *UnansweredError) Error() string {
	return fmt.Sprintf("%s %s cannot be answered without a cluster: %s", e.Method, e.Path, e.Reason)
}
