package kyverno

import (
	"context"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/decode"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
)

// imageLookup is what a registry says about an image
// (pkg/engine/context/loaders/imagedata.go).
type imageLookup struct {
	field     string // "context[0].imageRegistry"
	reference *variables.Template
	path      *dataPath
}

func decodeImageLookup(n decode.Node) loader {
	f := n.Fields()
	l := &imageLookup{field: fieldInRule(n.Path), reference: decodeTemplate(f.At("reference")), path: decodeDataPath(f.At("jmesPath"))}
	if f.At("reference").Text() == "" {
		f.At("reference").Fail("is missing")
	}
	if f.Has("imageRegistryCredentials") {
		f.At("imageRegistryCredentials").Lint("has no effect: images are looked up with the user's own docker configuration, over TLS")
	}
	f.Done()
	return l
}

func (l *imageLookup) notIdempotent() string { return l.path.notIdempotent() }

func (l *imageLookup) load(e *execution, s *variables.Scope) (any, error) {
	reference, err := renderText(l.reference, s)
	if err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	if e.world.Registry == nil {
		return nil, &UnsupportedError{Field: l.field, Reason: "images are looked up in registries only with --allow-registry"}
	}
	type key struct{ reference string }
	data, err := e.world.Memo.Do(e.ctx, key{reference}, func(ctx context.Context) (any, error) {
		return e.imageData(ctx, reference)
	})
	if err != nil {
		return nil, fmt.Errorf("failed to fetch image descriptor: %s: %w", reference, err)
	}
	return l.path.pick(e, s, data)
}

func (e *execution) imageData(ctx context.Context, reference string) (any, error) {
	image, err := e.world.Registry.Image(ctx, reference)
	if err != nil {
		return nil, err
	}
	data := map[string]any{
		"image":         reference,
		"resolvedImage": image.Resolved,
		"registry":      image.Registry,
		"repository":    image.Repository,
		"identifier":    image.Identifier,
	}
	for _, part := range []struct {
		name    string
		content []byte
	}{{"manifestList", image.ManifestList}, {"manifest", image.Manifest}, {"configData", image.Config}} {
		data[part.name] = nil
		if part.content == nil {
			continue
		}
		if data[part.name], err = decodeAnswer(part.content, nil); err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return data, nil
}
