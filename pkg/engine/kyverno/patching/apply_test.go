package patching_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/patching"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/openapi"
)

func TestApply(t *testing.T) {
	for _, c := range conformance.ReadPatchCases(t, "testdata/apply.txtar") {
		t.Run(c.Name, func(t *testing.T) { testApply(t, c) })
	}
}

// apply compiles and applies a patch.
func apply(t testing.TB, live, patch map[string]any, why *engine.Reasons) (map[string]any, []engine.Warning, error) {
	t.Helper()
	compiled, err := patching.CompileStrategicMerge(patch)
	if err != nil {
		return live, nil, err
	}
	return compiled.Apply(nil, live, listsOf(t, live), why)
}

// listsOf knows the lists of Pods, and of example.com's Widgets, whose parts have an id.
func listsOf(t testing.TB, live map[string]any) *patching.Lists {
	t.Helper()
	gvk := (&unstructured.Unstructured{Object: live}).GroupVersionKind()
	d, err := &openapi.Document{}, error(nil)
	switch {
	case gvk.Kind == "Pod":
		gvk.Version = "v1"
		d, err = openapi.Builtin(gvk)
	case gvk.Group == "example.com":
		d, err = openapi.FromCustomResource(gvk, object(t, `{type: object, properties: {spec: {type: object, properties: {
			tags: {type: array, items: {type: string}},
			parts: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id], items: {
				type: object, properties: {id: {type: string}, a: {type: string}, b: {type: string}}}}}}}}`))
	}
	if err != nil {
		t.Fatal(err)
	}
	return patching.NewLists(d.Schema(gvk), gvk)
}

func testApply(t *testing.T, c conformance.PatchCase) {
	patch := object(t, c.Parts["patch"])
	before := kruntime.DeepCopyJSON(patch)
	var warnings []engine.Warning
	got, err := c.Check(t, func(live map[string]any) (out map[string]any, err error) {
		out, warnings, err = apply(t, live, patch, nil)
		return out, err
	})
	if diff := cmp.Diff(before, patch); diff != "" {
		t.Errorf("the patch was modified:\n%s", diff)
	}
	if path, skips := c.Parts["skipped"]; skips {
		var failed *patching.ConditionError
		if !errors.As(err, &failed) || failed.Path != strings.TrimSpace(path) || failed.Error() == "" {
			t.Fatalf("error %v, want a condition on %s", err, path)
		}
	}
	if err != nil {
		return
	}
	checkWarnings(t, c.Parts["warning"], warnings)
	if want, ok := c.Parts["engine"]; ok {
		checkInEngine(t, want, object(t, c.Parts["live"]), patch)
	}
	again, _, err := apply(t, got, patch, nil)
	if _, changes := c.Parts["again"]; !changes && (err != nil || !diff.Shared(again, got)) {
		t.Errorf("the patch changes its own result: %v\n%s", err, cmp.Diff(got, again))
	}
}

// checkInEngine compares what Kyverno would make of an object with what Kyverno 1.19.1 made of it;
// lists are in our order.
func checkInEngine(t *testing.T, want string, live, patch map[string]any) {
	t.Helper()
	compiled, err := patching.CompileStrategicMerge(patch)
	if err != nil {
		t.Fatal(err)
	}
	got, known, err := compiled.InEngine(nil, live, listsOf(t, live))
	if err != nil {
		t.Fatal(err)
	}
	if wantKnown := strings.TrimSpace(want) != "unknown"; known != wantKnown {
		t.Fatalf("known: %t, want %t", known, wantKnown)
	}
	if !known {
		return
	}
	if diff := cmp.Diff(object(t, want), got); diff != "" {
		t.Errorf("in the engine (-want +got):\n%s", diff)
	}
}

func checkWarnings(t *testing.T, want string, got []engine.Warning) {
	t.Helper()
	if want = strings.TrimSpace(want); want == "" {
		if len(got) > 0 {
			t.Errorf("warnings %q, want none", got)
		}
		return
	}
	for _, w := range got {
		if strings.Contains(string(w), want) {
			return
		}
	}
	t.Errorf("warnings %q, want one with %q", got, want)
}

func object(t testing.TB, text string) map[string]any { return conformance.ReadMap(t, text) }

func decode(text string) (map[string]any, error) {
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, err
	}
	var out map[string]any
	err = utiljson.Unmarshal(raw, &out)
	return out, err
}

func TestApplySharesUntouched(t *testing.T) {
	live := object(t, `{kind: Pod, metadata: {labels: {a: b}}, spec: {containers: [{name: a, env: [{name: A}]}, {name: b}]}}`)
	got, _, err := apply(t, live, object(t, `spec: {containers: [{name: a, image: x}]}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !diff.Shared(got["metadata"].(map[string]any), live["metadata"].(map[string]any)) {
		t.Error("metadata was not touched, but is a copy")
	}
	containers := func(o map[string]any) []any { return o["spec"].(map[string]any)["containers"].([]any) }
	if !diff.Shared(containers(got)[1].(map[string]any), containers(live)[1].(map[string]any)) {
		t.Error("the second container was not touched, but is a copy")
	}
}

func FuzzApply(f *testing.F) {
	for _, c := range conformance.ReadPatchCases(f, "testdata/apply.txtar") {
		f.Add(c.Parts["live"], c.Parts["patch"])
	}
	f.Fuzz(func(t *testing.T, liveText, patchText string) {
		live, err := decode(liveText)
		if err != nil || live == nil {
			return
		}
		patch, err := decode(patchText)
		if err != nil {
			return
		}
		liveBefore, patchBefore := kruntime.DeepCopyJSON(live), kruntime.DeepCopyJSON(patch)
		got, _, err := apply(t, live, patch, engine.NewReasons())
		if diff := cmp.Diff(liveBefore, live); diff != "" {
			t.Fatalf("the live object was modified:\n%s", diff)
		}
		if diff := cmp.Diff(patchBefore, patch); diff != "" {
			t.Fatalf("the patch was modified:\n%s", diff)
		}
		if err != nil || strings.ContainsAny(patchText, "(") {
			return // a patch may well make its own conditions fail, or hold
		}
		again, _, err := apply(t, got, patch, nil)
		if err != nil || !diff.Shared(again, got) {
			t.Fatalf("the patch changes its own result: %v\n%s", err, cmp.Diff(got, again))
		}
	})
}

// TestCompileDepthLimit nests lists with anchors, each of which is judged
// again at every level above it.
func TestCompileDepthLimit(t *testing.T) {
	live, patch := map[string]any{}, map[string]any{}
	for depth := 1; depth <= 100; depth++ {
		live = map[string]any{"name": "a", "l": []any{live, map[string]any{"name": "b"}}}
		patch = map[string]any{"name": "a", "+(x)": "y", "l": []any{patch}}
		_, _, err := apply(t, live, patch, nil)
		if fails := depth > 64; fails != (err != nil) {
			t.Fatalf("depth %d: error %v", depth, err)
		}
	}
}
