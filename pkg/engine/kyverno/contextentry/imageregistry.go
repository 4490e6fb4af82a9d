package contextentry

import (
	"context"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// imageLookup is what a registry knows about an image
// (pkg/engine/context/loaders/imagedata.go).
type imageLookup struct {
	field     string // "context[0].imageRegistry"
	written   string // the reference, as the policy has it
	reference *variables.Template
	path      *dataPath
}

func decodeImageLookup(n policydecode.Node) source {
	f := n.Fields()
	l := &imageLookup{field: n.PathInRule(), written: f.At("reference").Required(), reference: variables.Decode(f.At("reference")), path: decodeDataPath(f.At("jmesPath"))}
	if f.Has("imageRegistryCredentials") {
		f.At("imageRegistryCredentials").Lint("has no effect: images are looked up with the user's own docker configuration, over TLS")
	}
	f.Done()
	return l
}

func (l *imageLookup) asks(Globals) []engine.Ask {
	return []engine.Ask{{Of: engine.AskRegistry, What: l.written}}
}

func (l *imageLookup) notIdempotent() string { return l.path.notIdempotent() }

func (l *imageLookup) load(from *Sources, s *variables.Scope) (any, error) {
	reference, err := renderText(l.reference, s)
	if err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	if from.World.Registry == nil {
		return nil, &jmespath.UnsupportedError{Field: l.field, Reason: "images are looked up in registries only with --allow-registry"}
	}
	type key struct{ reference string }
	data, err := from.ask(key{reference}, func(ctx context.Context) (any, error) {
		return imageData(ctx, from.World.Registry, reference)
	})
	if err != nil {
		return nil, fmt.Errorf("failed to fetch image descriptor: %s: %w", reference, err)
	}
	return l.path.pick(s, data)
}

func imageData(ctx context.Context, registry engine.ImageRegistry, reference string) (any, error) {
	image, err := registry.Image(ctx, reference)
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
