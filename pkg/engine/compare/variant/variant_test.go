package variant_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare/variant"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

// generator derives variants for a policy about tolerations.
func generator(t *testing.T, limit int, matches ...engine.Selection) *variant.Generator {
	t.Helper()
	return generatorOf(t, "tolerations", limit, matches...)
}

// generatorOf derives variants for the policy of a case.
func generatorOf(t *testing.T, name string, limit int, matches ...engine.Selection) *variant.Generator {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/" + name + ".txtar")
	if err != nil {
		t.Fatal(err)
	}
	policy := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(archive.Files[0].Data, &policy.Object); err != nil {
		t.Fatal(err)
	}
	world, err := snapshot.Load(nil, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return variant.New(variant.Options{
		Policies: []*unstructured.Unstructured{policy}, Matches: matches, Reader: world, Mapper: world.Mapper(), Seed: 1, Limit: limit,
	})
}

var pods = engine.Selection{Version: "v1", Kind: "Pod"}

func texts(t *testing.T, g *variant.Generator) []string {
	t.Helper()
	var out []string
	for v := range g.Variants(t.Context(), nil) {
		if !g.Valid(t.Context(), v.Object) {
			t.Errorf("not valid: %v", v.Object)
		}
		text, err := json.Marshal([]any{v.Object.Object, v.Namespace})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
	return out
}

// Variants are valid, no two alike, no more than were asked for, and the same each time.
func TestVariants(t *testing.T) {
	got := texts(t, generator(t, 300, pods))
	if len(got) != 300 {
		t.Errorf("%d variants", len(got))
	}
	sorted := slices.Clone(got)
	slices.Sort(sorted)
	if n := len(slices.Compact(sorted)); n != len(got) {
		t.Errorf("only %d of %d variants are different", n, len(got))
	}
	if d := cmp.Diff(got, texts(t, generator(t, 300, pods))); d != "" {
		t.Errorf("another run has others:\n%s", d)
	}
	all := strings.Join(got, "\n")
	for what, text := range map[string]string{
		"the value of the policy":   `"tolerations":[{"key":"example.com/gpu"`,
		"another value":             `"key":"other"`,
		"a container of that image": `"image":"registry.example.com/app:1"`,
		"an init container":         `"initContainers":[{`,
		"an ephemeral container":    `"ephemeralContainers":[{`,
		"a label of the policy":     `"labels":{"example.com/team":"web"}`,
		"a label of its Namespace":  `"example.com/team":"web","kubernetes.io/metadata.name":"minimal"`,
		"the namespace":             `"namespace":"kube-system"`,
		"a controller":              `"kind":"CronJob"`,
	} {
		if !strings.Contains(all, text) {
			t.Errorf("no variant has %s: %s", what, text)
		}
	}
}

// A policy that reads the status, or when an object was created, is shown objects that have these; one that
// compares labels with amounts others near these. A Service has ports of its own sort.
func TestVariantsHave(t *testing.T) {
	service := engine.Selection{Version: "v1", Kind: "Service"}
	for name, all := range map[string]string{
		"status":  strings.Join(texts(t, generatorOf(t, "status", 2000, pods)), "\n"),
		"amounts": strings.Join(texts(t, generatorOf(t, "amounts", 300, service)), "\n"),
	} {
		for _, text := range map[string][]string{
			"status":  {`"creationTimestamp":"2024-01-01T00:00:00Z"`, `"containerStatuses":[{"image":`},
			"amounts": {`"tier":"4"`, `"tier":"3"`, `"ttl":"1h"`, `"ports":[{"appProtocol":"http","port":80}`},
		}[name] {
			if !strings.Contains(all, text) {
				t.Errorf("no variant of %s has %s", name, text)
			}
		}
	}
}

// What does not matter is left out; what identifies the object, and what makes it valid, stays.
func TestReduce(t *testing.T) {
	g := generator(t, 1, pods)
	big, _ := g.Minimal(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	big.Object = big.Object.DeepCopy()
	big.Object.SetLabels(map[string]string{"a": "b"})
	for path, value := range map[string]any{"hostname": "h", "tolerations": []any{map[string]any{"key": "x", "operator": "Exists"}, map[string]any{"key": "gpu", "operator": "Exists"}}} {
		if err := unstructured.SetNestedField(big.Object.Object, value, "spec", path); err != nil {
			t.Fatal(err)
		}
	}
	before := big.Object.DeepCopy()
	small := g.Reduce(context.Background(), variant.Variant{Target: big}, func(v variant.Variant) bool {
		text, err := json.Marshal(v.Object.Object)
		return err == nil && strings.Contains(string(text), `"gpu"`)
	})
	text, err := json.Marshal(small.Object.Object)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"minimal","namespace":"minimal"},"spec":{"containers":[{"image":"nginx:1","name":"c"}],"tolerations":[{"key":"gpu"}]}}`
	if d := cmp.Diff(want, string(text)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if d := cmp.Diff(before, big.Object); d != "" {
		t.Errorf("the object was modified:\n%s", d)
	}
}
