package kyverno

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
)

// Each case of testdata/autogen is a policy's metadata.annotations and rules, and the
// rules that are derived from them.
func TestAutogenRules(t *testing.T) { conformance.Golden(t, "testdata/autogen", *update, derivedRules) }

func derivedRules(t *testing.T, sections map[string]string) string {
	var in, untouched struct {
		Annotations map[string]string `json:"annotations"`
		Rules       []map[string]any  `json:"rules"`
	}
	for _, out := range []any{&in, &untouched} {
		if err := yaml.UnmarshalStrict([]byte(sections["policy.yaml"]), out); err != nil {
			t.Fatal(err)
		}
	}
	var derived []map[string]any
	for _, rule := range autogenRules(in.Rules, in.Annotations) {
		derived = append(derived, rule.Fields)
	}
	if diff := cmp.Diff(untouched, in); diff != "" {
		t.Errorf("the rules that were handed in were modified:\n%s", diff)
	}
	got, err := yaml.Marshal(derived)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}
