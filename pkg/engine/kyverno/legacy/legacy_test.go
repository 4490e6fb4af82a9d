package legacy_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/legacy"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/strategicmerge"
)

// cases are the sections of an archive by case, and their order.
func cases(t testing.TB, file string) (sections map[string]map[string]string, names []string) {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	sections = map[string]map[string]string{}
	for _, f := range archive.Files {
		name, part, _ := strings.Cut(f.Name, "/")
		if sections[name] == nil {
			sections[name] = map[string]string{"live": string(archive.Files[0].Data)}
			names = append(names, name)
		}
		sections[name][part] = string(f.Data)
	}
	return sections, names[1:]
}

func TestApplyOverlay(t *testing.T) {
	sections, names := cases(t, "overlay.txtar")
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			c := sections[name]
			patch := decode(t, c["overlay"]).(map[string]any)
			got := check(t, c, patch, func(live map[string]any) (map[string]any, error) { return applyOverlay(live, patch) })
			if again, err := applyOverlay(got, patch); got != nil && (err != nil || !same(again, got)) {
				t.Errorf("the overlay changes its own result: %v\n%s", err, cmp.Diff(got, again))
			}
		})
	}
}

func applyOverlay(live, patch map[string]any) (map[string]any, error) {
	overlay, err := legacy.CompileOverlay(patch)
	if err != nil {
		return live, err
	}
	return overlay.Apply(live, engine.NewReasons(func(any) bool { return false }))
}

func TestApplyPatches(t *testing.T) {
	sections, names := cases(t, "patches.txtar")
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			c := sections[name]
			list := decode(t, c["patches"]).([]any)
			check(t, c, list, func(live map[string]any) (map[string]any, error) {
				patches, err := legacy.ParsePatches(list)
				if err != nil {
					return live, err
				}
				return patches.Apply(live, nil)
			})
		})
	}
}

// check applies something to the live object of a case and returns what came of
// it; nil when that was to be an error.
func check(t *testing.T, c map[string]string, patch any, apply func(map[string]any) (map[string]any, error)) map[string]any {
	t.Helper()
	live := decode(t, c["live"]).(map[string]any)
	liveBefore, patchBefore := runtime.DeepCopyJSON(live), runtime.DeepCopyJSONValue(patch)
	got, err := apply(live)
	if diff := cmp.Diff([]any{liveBefore, patchBefore}, []any{live, patch}); diff != "" {
		t.Errorf("what was handed in was modified:\n%s", diff)
	}
	path, skips := c["skipped"]
	text, fails := c["error"]
	var condition *strategicmerge.ConditionError
	switch {
	case skips && (!errors.As(err, &condition) || condition.Path != strings.TrimSpace(path)):
		t.Fatalf("error %v, want a condition on %s", err, path)
	case fails && (err == nil || !strings.Contains(err.Error(), strings.TrimSpace(text))):
		t.Fatalf("error %v, want %s", err, text)
	case (skips || fails) && !same(got, live):
		t.Errorf("an error, but the object is another one")
	case skips || fails:
		return nil
	case err != nil:
		t.Fatal(err)
	}
	if _, unchanged := c["unchanged"]; unchanged {
		if !same(got, live) {
			t.Errorf("the object is another one:\n%s", cmp.Diff(live, got))
		}
		return got
	}
	if diff := cmp.Diff(decode(t, c["want"]), any(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	return got
}

func TestPatchesNotIdempotent(t *testing.T) {
	add := map[string]any{"op": "add", "path": "/spec/containers/0/", "value": []any{map[string]any{}}}
	set := map[string]any{"op": "replace", "path": "/metadata/name", "value": "p"}
	for _, c := range []struct {
		list []any
		want string
	}{
		{[]any{set}, ""},
		{[]any{set, add}, "inserts into a list each time"},
	} {
		patches, err := legacy.ParsePatches(c.list)
		if err != nil {
			t.Fatal(err)
		}
		if got := patches.NotIdempotent(); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%v: %q, want %q", c.list, got, c.want)
		}
	}
}

// An overlay each of whose elements multiplies what the one before it has added
// reaches a limit and neither memory's end nor the day's.
func TestApplyOverlayLimits(t *testing.T) {
	items := make([]any, 200)
	for i := range items {
		items[i] = map[string]any{"i": int64(i)}
	}
	var elements []any
	nested := any(items)
	for range 6 {
		elements = append(elements, map[string]any{"l": nested})
		nested = []any{map[string]any{"l": nested}}
	}
	live := map[string]any{"l": []any{map[string]any{"n": "x"}}}
	_, err := applyOverlay(live, map[string]any{"l": elements})
	var limit *legacy.LimitError
	if !errors.As(err, &limit) {
		t.Errorf("error %v, want a limit", err)
	}
	deep := map[string]any{}
	for range 200 {
		deep = map[string]any{"a": deep}
	}
	if _, err := applyOverlay(live, deep); !errors.As(err, &limit) {
		t.Errorf("error %v, want a limit", err)
	}
}

// FuzzApplyOverlay holds that an overlay never panics, modifies nothing that it
// was given, says the same twice, and deletes nothing. That it comes to rest does
// not hold for all: one whose elements contradict each other, such as
// [{a: []}, {a: 0}], adds an item each time.
func FuzzApplyOverlay(f *testing.F) {
	sections, names := cases(f, "overlay.txtar")
	for _, name := range names {
		f.Add(sections[name]["live"], sections[name]["overlay"])
	}
	f.Fuzz(func(t *testing.T, liveText, patchText string) {
		live, patch := mapping(liveText), mapping(patchText)
		liveBefore, patchBefore := runtime.DeepCopyJSON(live), runtime.DeepCopyJSON(patch)
		got, err := applyOverlay(live, patch)
		if !reflect.DeepEqual(liveBefore, live) || !reflect.DeepEqual(patchBefore, patch) {
			t.Fatal("what was handed in was modified")
		}
		if err != nil {
			if err.Error() == "" || !same(got, live) {
				t.Fatalf("error %q with another object", err)
			}
			return
		}
		again, err := applyOverlay(live, patch)
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Fatalf("the second answer is another one: %v\n%s", err, cmp.Diff(got, again))
		}
		for key := range live {
			if _, present := got[key]; !present {
				t.Fatalf("%s was deleted", key)
			}
		}
	})
}

// FuzzPatches holds that patches never panic, modify nothing that they were given,
// and leave the object alone where they fail.
func FuzzPatches(f *testing.F) {
	sections, names := cases(f, "patches.txtar")
	for _, name := range names {
		f.Add(sections[name]["live"], sections[name]["patches"])
	}
	f.Fuzz(func(t *testing.T, liveText, patchesText string) {
		live := mapping(liveText)
		list, _ := mapping("patches:\n" + patchesText)["patches"].([]any)
		before := []any{runtime.DeepCopyJSON(live), runtime.DeepCopyJSONValue(list)}
		patches, err := legacy.ParsePatches(list)
		got, failed := patches.Apply(live, engine.NewReasons(func(any) bool { return false }))
		if !reflect.DeepEqual(before, []any{live, list}) {
			t.Fatal("what was handed in was modified")
		}
		if failed != nil && !same(got, live) {
			t.Fatalf("error %q with another object", failed)
		}
		for _, err := range []error{err, failed} {
			if err != nil && err.Error() == "" {
				t.Fatal("an error that says nothing")
			}
		}
	})
}

func decode(t testing.TB, text string) any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := utiljson.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func mapping(text string) map[string]any {
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil || !json.Valid(raw) {
		return map[string]any{"text": text}
	}
	var m map[string]any
	if err := utiljson.Unmarshal(raw, &m); err != nil || m == nil {
		return map[string]any{"text": text}
	}
	return m
}

func same(a, b map[string]any) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}
