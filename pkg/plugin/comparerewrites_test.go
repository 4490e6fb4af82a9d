package plugin_test

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
)

// rewrite is a wrong rewrite of rules.
type rewrite struct {
	Slip       string `json:"slip"`
	OldAutogen bool   `json:"oldAutogen"`
	NewAutogen bool   `json:"newAutogen"`
	Old        any    `json:"old"` // rules of a ClusterPolicy
	New        any    `json:"new"` // the spec of a MutatingPolicy
}

// policies writes both policies.
func (r *rewrite) policies(t *testing.T, dir string) policyPair {
	t.Helper()
	p := policyPair{r.Slip, filepath.Join(dir, "old.yaml"), filepath.Join(dir, "new.yaml"), filepath.Join(dir, "objects.yaml"), "2000"}
	metadata, spec := map[string]any{"name": "p"}, r.New.(map[string]any)
	if !r.OldAutogen {
		metadata["annotations"] = map[string]any{"pod-policies.kyverno.io/autogen-controllers": "none"}
	}
	if _, set := spec["autogen"]; !set && !r.NewAutogen {
		spec["autogen"] = map[string]any{"podControllers": map[string]any{"controllers": []any{}}}
	}
	for path, u := range map[string]any{
		p.old:       map[string]any{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": metadata, "spec": map[string]any{"rules": r.Old}},
		p.rewritten: map[string]any{"apiVersion": "policies.kyverno.io/v1", "kind": "MutatingPolicy", "metadata": map[string]any{"name": "p"}, "spec": spec},
		p.objects: map[string]any{ // which no policy changes
			"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": map[string]any{"name": "other", "namespace": "other"}, "spec": map[string]any{"minAvailable": 1},
		},
	} {
		content, err := yaml.Marshal(u)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, string(content))
	}
	return p
}

// TestCompareRewrites compares rules with wrong rewrites of them. Variants of minimal objects have to show
// each.
func TestCompareRewrites(t *testing.T) {
	tier.NotShort(t)
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "no-cluster"))
	content, err := os.ReadFile(filepath.Join("testdata", "compare-rewrites.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all []rewrite
	if err := yaml.UnmarshalStrict(content, &all); err != nil {
		t.Fatal(err)
	}
	for i, r := range all {
		if i%tier.Pick(6, 1) > 0 {
			continue
		}
		t.Run(r.Slip, func(t *testing.T) {
			t.Parallel()
			p := r.policies(t, t.TempDir())
			if p.compare(t).where() == "" {
				t.Error("compare finds no difference")
			}
		})
	}
}
