package mutatingpolicy

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

//nolint:gochecknoglobals // an immutable value
var imageDataType = cel.OpaqueType("imagedata.Context")

// imageDataOptions declare image.GetMetadata(reference).
func imageDataOptions() []cel.EnvOption {
	options := []cel.EnvOption{cel.Variable(imageName, imageDataType)}
	for _, name := range []string{"GetMetadata", "getMetadata"} {
		options = append(options, cel.Function(name,
			cel.MemberOverload("imagedata_"+name, []*cel.Type{imageDataType, cel.StringType}, cel.DynType,
				cel.BinaryBinding(imageMetadata))))
	}
	return options
}

func imageMetadata(context, reference ref.Val) ref.Val {
	data, err := context.Value().(*Session).imageData(reference.Value().(string))
	if err != nil {
		return failed("image.GetMetadata", err)
	}
	return types.DefaultTypeAdapter.NativeToValue(data)
}

// imageData returns Kyverno's data about an image (extensions/imagedataloader in kyverno/sdk), with the
// registry's fields of manifest and config.
func (s *Session) imageData(reference string) (any, error) {
	if s.world.Registry == nil {
		return nil, s.lacks("image.GetMetadata: images are looked up in registries only with --allow-registry")
	}
	type key struct{ reference string }
	return engine.Once(s.context, s.world, key{reference}, func(w *engine.World) (any, error) {
		found, err := w.Registry.Image(s.context, reference)
		if err != nil {
			return nil, err
		}
		return describe(reference, found)
	})
}

func describe(reference string, found engine.Image) (map[string]any, error) {
	name, digest, _ := strings.Cut(found.Resolved, "@")
	data := map[string]any{
		"image": reference, "registry": found.Registry, "repository": found.Repository,
		"identifier": found.Identifier, "digest": digest, "resolvedImage": found.Resolved,
	}
	if found.Identifier != digest {
		data["tag"] = found.Identifier
		data["resolvedImage"] = name + ":" + found.Identifier + "@" + digest
	}
	for _, part := range []struct {
		name    string
		content []byte
	}{{"imageIndex", found.ManifestList}, {"manifest", found.Manifest}, {"config", found.Config}} {
		if part.content == nil {
			continue
		}
		var value any
		if err := json.Unmarshal(part.content, &value); err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
		data[part.name] = value
	}
	return data, nil
}
