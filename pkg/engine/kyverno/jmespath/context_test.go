package jmespath_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
)

const digest = "sha256:128c6e3534b842a2eec139999b8ce8aa9a2af9907e2b9269550809d18cd832a3"

func TestImagesOf(t *testing.T) {
	object := map[string]any{"spec": map[string]any{
		"containers": []any{
			map[string]any{"name": "plain", "image": "nginx:1.2"},
			map[string]any{"name": "broken", "image": "::"},
			map[string]any{"name": "by-digest", "image": "r.example/a/b@" + digest},
			"no container",
		},
		"initContainers":      []any{map[string]any{"name": "init", "image": "busybox"}},
		"ephemeralContainers": []any{},
	}}
	want := map[string]any{
		"containers": map[string]any{
			"plain": map[string]any{
				"registry": "docker.io", "path": "nginx", "name": "nginx", "tag": "1.2", "reference": "docker.io/nginx:1.2",
				"referenceWithTag": "docker.io/nginx:1.2", "jsonPointer": "/spec/containers/0/image",
			},
			"by-digest": map[string]any{
				"registry": "r.example", "path": "a/b", "name": "b", "digest": digest, "reference": "r.example/a/b@" + digest,
				"referenceWithTag": "r.example/a/b:", "jsonPointer": "/spec/containers/2/image",
			},
		},
		"initContainers": map[string]any{
			"init": map[string]any{
				"registry": "docker.io", "path": "busybox", "name": "busybox", "tag": "latest", "reference": "docker.io/busybox:latest",
				"referenceWithTag": "docker.io/busybox:latest", "jsonPointer": "/spec/initContainers/0/image",
			},
		},
	}
	if diff := cmp.Diff(want, jmespath.Images(object, schema.GroupKind{Kind: "Pod"})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := jmespath.Images(map[string]any{"spec": "x"}, schema.GroupKind{Kind: "Pod"}); got != nil {
		t.Errorf("a broken object: got %v", got)
	}
}
