package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// What is written reads as what was meant, whatever its texts look like, and is
// laid out as the YAML library does.
func TestYAMLIsTheLibrarys(t *testing.T) {
	texts := []any{
		"", " ", "a", "y", "No", "null", "~", "1", "0x1f", "1e3", "1:30", "500m", "2026-01-01", "nginx:1.27", "a:", "a: b", "a #b", "#", "- a", "-", "?", "*a", "&a", "!x",
		"{a}", "[a]", "'", `"`, "a\nb", "a\nb\n", "a\n\n", "\n", " a\n b\n", "tab\there", "é", "\x07", "=", "true", "a'b", "%a", "@a", "`a`", "a, b",
		"one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen",
		int64(3), int64(-1), 0.5, 1e21, true, false, nil,
		map[string]any{},
		[]any{},
	}
	object := map[string]any{"list": texts, "nested": []any{[]any{"a", []any{"b", map[string]any{"c": texts}}}, map[string]any{"d": texts, "e": []any{map[string]any{"f": "g"}}}}}
	for _, v := range texts {
		if s, ok := v.(string); ok {
			object["k"+s] = map[string]any{s: s, "in": map[string]any{"deep": s}}
		}
	}
	var w yamlWriter
	got, err := w.object(object)
	if err != nil {
		t.Fatal(err)
	}
	want, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var again, meant any
	if err := yaml.Unmarshal([]byte(got), &again); err != nil {
		t.Fatalf("%v\n%s", err, got)
	}
	if err := yaml.Unmarshal(want, &meant); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(meant, again); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestYAMLIsLaidOutAsTheLibraryDoes(t *testing.T) {
	object := map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": "web", "labels": map[string]any{"app.kubernetes.io/name": "web", "empty": "", "on": "true"}},
		"spec": map[string]any{
			"containers": []any{map[string]any{
				"name": "a", "image": "nginx:1.27", "args": []any{"-c", "echo a; sleep 1"}, "command": []any{},
				"resources": map[string]any{"limits": map[string]any{"cpu": "500m", "memory": "1Gi"}},
				"env":       []any{map[string]any{"name": "A", "value": "x\ny\n"}},
			}},
			"volumes": []any{map[string]any{"name": "v", "emptyDir": map[string]any{}}},
		},
	}
	var w yamlWriter
	got, err := w.object(object)
	if err != nil {
		t.Fatal(err)
	}
	want, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
