package patching_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/patching"
)

func TestApplyJSONPatch(t *testing.T) {
	for _, c := range conformance.ReadPatchCases(t, "testdata/jsonpatch.txtar") {
		t.Run(c.Name, func(t *testing.T) {
			_, err := c.Check(t, func(live map[string]any) (map[string]any, error) {
				p, err := patching.ParseJSONPatch(c.Parts["patch"])
				if err != nil {
					t.Fatal(err)
				}
				return p.Apply(nil, live, nil)
			})
			var failed *patching.OperationError
			if err != nil && !errors.As(err, &failed) {
				t.Errorf("error %v is no error of an operation", err)
			}
		})
	}
}

// Patches of Kyverno 1.0 to 1.5.
func TestApplyOldPatches(t *testing.T) {
	for _, c := range conformance.ReadPatchCases(t, "testdata/patches.txtar") {
		t.Run(c.Name, func(t *testing.T) {
			list, _ := conformance.ReadMap(t, "patches:\n"+c.Parts["patches"])["patches"].([]any)
			before := runtime.DeepCopyJSONValue(list)
			_, _ = c.Check(t, func(live map[string]any) (map[string]any, error) {
				p, err := patching.DecodeOldPatches(list)
				if err != nil {
					return live, err
				}
				return p.Apply(nil, live, nil)
			})
			if diff := cmp.Diff(before, any(list)); diff != "" {
				t.Errorf("the patches were modified:\n%s", diff)
			}
		})
	}
}

func TestApplyCopyLimit(t *testing.T) {
	p, err := patching.ParseJSONPatch(strings.Repeat("- {op: copy, from: \"\", path: /a}\n- {op: copy, from: \"\", path: /b}\n", 40))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Apply(nil, map[string]any{}, nil); err == nil || !strings.Contains(err.Error(), "limit") {
		t.Errorf("error %v, want one that names the limit", err)
	}
}

func FuzzParseAndApply(f *testing.F) {
	for _, c := range conformance.ReadPatchCases(f, "testdata/jsonpatch.txtar") {
		f.Add(c.Parts["patch"], c.Parts["live"])
	}
	f.Fuzz(func(t *testing.T, patch, text string) {
		p, err := patching.ParseJSONPatch(patch)
		if err != nil {
			return
		}
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			return
		}
		var live map[string]any
		if utiljson.Unmarshal(raw, &live) != nil {
			return
		}
		before := runtime.DeepCopyJSON(live)
		why := engine.NewReasons()
		once, err := p.Apply(nil, live, why)
		if said := why.Err() != nil; err == nil && !said && cmp.Equal(before, once) {
			t.Fatal("a patch that changes nothing does not say why")
		}
		if diff := cmp.Diff(before, live); diff != "" {
			t.Fatalf("the live object was modified:\n%s", diff)
		}
		if err != nil {
			return
		}
		snapshot := runtime.DeepCopyJSON(once)
		if _, err := p.Apply(nil, once, nil); err != nil {
			return // a test that the patch itself makes fail
		}
		if diff := cmp.Diff(snapshot, once); diff != "" {
			t.Fatalf("the result was modified:\n%s", diff)
		}
	})
}
