package variant

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// registry has every image. Its answer depends only on the reference: some images have annotations, labels, a
// user or an index, others do not.
type registry struct{ literals *literals }

// NewRegistry returns a simulated registry for policies that look up images. It never connects to one.
func NewRegistry(policies []*unstructured.Unstructured) engine.ImageRegistry {
	return registry{newLiterals(policies)}
}

// Image implements engine.ImageRegistry.
func (r registry) Image(_ context.Context, reference string) (engine.Image, error) {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return engine.Image{}, err
	}
	out := engine.Image{
		Registry: ref.Context().RegistryStr(), Repository: ref.Context().RepositoryStr(),
		Identifier: ref.Identifier(),
	}
	sum := sha256.Sum256([]byte(ref.Name()))
	digest := "sha256:" + hex.EncodeToString(sum[:])
	if strings.HasPrefix(out.Identifier, "sha256:") {
		digest = out.Identifier
	}
	out.Resolved = ref.Context().Name() + "@" + digest
	// repeatable
	chance := rand.New(rand.NewPCG(binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])))
	config := map[string]any{
		"User": r.near("User", "1000", chance), "WorkingDir": r.near("WorkingDir", "/", chance),
		"Labels":     r.labels(chance),
		"Entrypoint": []any{"/app"}, "Cmd": []any{"serve"}, "Env": []any{"PATH=/bin"},
		"ExposedPorts": map[string]any{"80/tcp": map[string]any{}},
	}
	for _, field := range sortedKeys(config) {
		if chance.IntN(2) == 0 {
			delete(config, field)
		}
	}
	manifest := map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": map[string]any{"digest": digest, "size": 1}, "layers": []any{}}
	index := map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
		"manifests": []any{},
	}
	for _, content := range []map[string]any{manifest, index} {
		if chance.IntN(2) == 0 {
			content["annotations"] = r.labels(chance)
		}
	}
	out.Manifest = encoded(manifest)
	out.Config = encoded(map[string]any{
		"architecture": "amd64", "os": "linux",
		"created": "2026-01-01T00:00:00Z", "config": config,
	})
	if chance.IntN(2) == 0 {
		out.ManifestList = encoded(index)
	}
	return out, nil
}

// near returns a value that policies have for a field, or another one.
func (r registry) near(field string, other any, chance *rand.Rand) any {
	values := append([]any{other}, r.literals.near[field]...)
	return values[chance.IntN(len(values))]
}

// labels returns some of the labels named in the policies.
func (r registry) labels(chance *rand.Rand) map[string]any {
	out := map[string]any{"maintainer": "dev"}
	for _, key := range r.literals.below[labels] {
		values := append([]any{minimalName, ""}, r.literals.near[key]...)
		if value := fmt.Sprint(values[chance.IntN(len(values))]); chance.IntN(2) == 0 {
			out[key] = value
		}
	}
	return out
}

func encoded(value any) []byte {
	out, _ := json.Marshal(value) // of maps, lists, numbers and strings
	return out
}
