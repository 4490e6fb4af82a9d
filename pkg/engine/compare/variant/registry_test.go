package variant_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare/variant"
)

// TestRegistry looks images up in the registry that is made up: what it says of one is always the same, some
// have the annotation that a policy reads and others have not, and what it resolves is what was asked for.
func TestRegistry(t *testing.T) {
	const key = "org.opencontainers.image.base.name"
	policy := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"jmesPath": `data.manifest.annotations."` + key + `"`}}}
	registry := variant.NewRegistry([]*unstructured.Unstructured{policy})
	with, without, indexes := 0, 0, 0
	for _, tag := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
		image, err := registry.Image(t.Context(), "ghcr.io/team/app:"+tag)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := registry.Image(t.Context(), "ghcr.io/team/app:"+tag)
		if diff := cmp.Diff(image, again); diff != "" {
			t.Errorf("another image the second time:\n%s", diff)
		}
		if image.Registry != "ghcr.io" || image.Repository != "team/app" || image.Identifier != tag || !strings.HasPrefix(image.Resolved, "ghcr.io/team/app@sha256:") {
			t.Errorf("%+v", image)
		}
		if bytes.Contains(image.Manifest, []byte(key)) {
			with++
		} else {
			without++
		}
		if image.ManifestList != nil {
			indexes++
		}
		_, digest, _ := strings.Cut(image.Resolved, "@")
		byDigest, err := registry.Image(t.Context(), "ghcr.io/team/app@"+digest)
		if err != nil || byDigest.Resolved != image.Resolved {
			t.Errorf("%s resolves to %s: %v", digest, byDigest.Resolved, err)
		}
	}
	if with == 0 || without == 0 || indexes == 0 || indexes == with+without {
		t.Errorf("%d have the annotation, %d have not, %d are indexes", with, without, indexes)
	}
	if _, err := registry.Image(t.Context(), "NOT AN IMAGE"); err == nil {
		t.Error("what is no reference names an image")
	}
}
