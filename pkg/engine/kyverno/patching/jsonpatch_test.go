package patching_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	evanphx "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
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

func jsonObject(t testing.TB, text string) map[string]any { return conformance.ReadMap(t, text) }

func TestJSONPatchSharesUntouched(t *testing.T) {
	live := jsonObject(t, `{"a": {"b": 1}, "c": {"d": {"e": 1}}}`)
	p, err := patching.ParseJSONPatch(`[{"op": "add", "path": "/c/x", "value": 1}]`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Apply(nil, live, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !diff.Shared(got["a"].(map[string]any), live["a"].(map[string]any)) {
		t.Error("a was not touched, but is a copy")
	}
	if !diff.Shared(got["c"].(map[string]any)["d"].(map[string]any), live["c"].(map[string]any)["d"].(map[string]any)) {
		t.Error("c.d was not touched, but is a copy")
	}
}

func TestParseErrors(t *testing.T) {
	deep := strings.Repeat("/a", 129)
	for name, c := range map[string]struct{ patch, want string }{
		"a single operation":     {`{op: add, path: /a, value: 1}`, "but it is a single one"},
		"nothing":                {"", "but it is empty"},
		"a text":                 {"remove", "but it is the value remove"},
		"no YAML":                {"- [", "YAML or JSON"},
		"no map":                 {"- {op: remove, path: /a}\n- 5", "operation 1: an operation must be a map"},
		"no operation":           {"- {path: /a}", "operation 0 (/a): it has no op"},
		"an unknown operation":   {"- {op: append, path: /a, value: 1}", "operation 0 (append /a): there is no such operation"},
		"no path":                {"- {op: remove}", "operation 0 (remove): it has no path"},
		"no value":               {"- {op: add, path: /a}", "operation 0 (add /a): it has no value"},
		"no from":                {"- {op: move, path: /a}", "operation 0 (move /a): it has no from path"},
		"no leading slash":       {"- {op: remove, path: a/b}", "must begin with /: /a/b"},
		"no leading slash: from": {"- {op: copy, from: a, path: /b}", "from: the path must begin with /"},
		"a slash at the end":     {"- {op: remove, path: /a/}", "empty key"},
		"two slashes":            {"- {op: remove, path: /a//b}", "empty key"},
		"removing the object":    {`- {op: remove, path: ""}`, "cannot change"},
		"moving the object":      {`- {op: move, from: "", path: /a}`, "cannot be moved"},
		"a scalar as the object": {`- {op: add, path: "", value: 1}`, "must be a map"},
		"a path too deep":        {"- {op: remove, path: " + deep + "}", "limit of 128"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := patching.ParseJSONPatch(c.patch); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
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

// kyvernoOptions are those of Kyverno 1.19.
func kyvernoOptions() *evanphx.ApplyOptions {
	options := evanphx.NewApplyOptions()
	options.SupportNegativeIndices, options.AllowMissingPathOnRemove, options.EnsurePathExistsOnAdd = true, true, true
	return options
}

// TestApplyAgreesWithEvanphx compares random patches with the library that Kyverno
// uses. Cases where this package differs on purpose are left out: replace of
// what is missing, replace behind the end of a list, parents that are null, and
// paths that lead through a scalar or through a wrong index of a list, where the
// library goes on in a document that it then forgets.
func TestApplyAgreesWithEvanphx(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	options := kyvernoOptions()
	agreed, failed := 0, 0
	for range 20_000 {
		live := randomObject(rng)
		ops := randomOperations(rng)
		text, _ := json.Marshal(ops)
		ours, err := patching.ParseJSONPatch(string(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		theirs, err := evanphx.DecodePatch(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		raw, _ := json.Marshal(live)
		want, wantErr := theirs.ApplyWithOptions(raw, options)
		got, gotErr := ours.Apply(nil, live, nil)
		if gotErr != nil && wantErr != nil {
			failed++
			continue
		}
		if gotErr == nil && wantErr != nil && ops[len(ops)-1]["op"] == "replace" {
			continue // of what is missing
		}
		ourText, _ := json.Marshal(got)
		if strings.Contains(string(ourText)+string(want), "null") {
			continue // a null that padded a list
		}
		if gotErr != nil || wantErr != nil {
			t.Fatalf("%s on %s: ours %v, theirs %v", text, raw, gotErr, wantErr)
		}
		var wanted map[string]any
		if err := utiljson.Unmarshal(want, &wanted); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Fatalf("%s on %s: -theirs +ours\n%s", text, raw, diff)
		}
		agreed++
	}
	t.Logf("%d patches agreed, %d failed in both", agreed, failed)
}

func randomObject(rng *rand.Rand) map[string]any {
	object := map[string]any{}
	for _, key := range []string{"a", "b", "c"} {
		if rng.IntN(3) > 0 {
			object[key] = randomValue(rng, 3)
		}
	}
	return object
}

func randomValue(rng *rand.Rand, depth int) any {
	switch n := rng.IntN(6); {
	case n == 0 || depth == 0:
		return []any{int64(1), "x", true}[rng.IntN(3)]
	case n < 3:
		list := []any{}
		for range rng.IntN(4) {
			list = append(list, randomValue(rng, depth-1))
		}
		return list
	default:
		m := map[string]any{}
		for _, key := range []string{"a", "b"} {
			if rng.IntN(2) > 0 {
				m[key] = randomValue(rng, depth-1)
			}
		}
		return m
	}
}

func randomOperations(rng *rand.Rand) []map[string]any {
	path := func() string {
		tokens := []string{"a", "b", "c"}
		p := "/" + tokens[rng.IntN(3)]
		for range rng.IntN(4) {
			p += "/" + []string{"a", "b", "0", "1", "2", "-1", "-2", "-"}[rng.IntN(8)]
		}
		return p
	}
	var ops []map[string]any
	for range 1 + rng.IntN(2) {
		o := map[string]any{"op": []string{"add", "add", "remove", "test", "move", "copy"}[rng.IntN(6)], "path": path()}
		switch o["op"] {
		case "add":
			o["value"] = randomValue(rng, 1)
		case "test":
			o["value"] = []any{nil, int64(1), "x", map[string]any{}}[rng.IntN(4)]
		case "move", "copy":
			o["from"] = path()
		}
		ops = append(ops, o)
	}
	if rng.IntN(4) == 0 {
		ops = append(ops, map[string]any{"op": "replace", "path": path(), "value": randomValue(rng, 1)})
	}
	return ops
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
