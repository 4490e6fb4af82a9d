package plugin_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
)

// decidingWorld has a Secret whose values name one of two parts of each object.
func decidingWorld(key string, index int) string {
	other := map[string]string{"alpha": "bravo", "bravo": "alpha"}[key]
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}, "stringData": {"key": %q, "other": %q, "index": "%d", "field": %q, "path": %q}}`,
		key, other, index, map[string]string{"alpha": "data", "bravo": "binaryData"}[key], "/data/"+key) + `
---
{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default", "labels": {"alpha": "1", "bravo": "2"}, "finalizers": ["example.com/a", "example.com/b", "example.com/c"]},
 "data": {"alpha": "1", "bravo": "2"}, "binaryData": {"x": "YQ=="}}
---
{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}`
}

// decidedRules have a Secret decide which part of an object they change.
func decidedRules() map[string][]map[string]any {
	patch := func(operations ...fields) map[string]any {
		text, _ := json.Marshal(operations) // plain values
		return fields{"mutate": fields{"patchesJson6902": string(text)}}
	}
	merge := func(of fields) map[string]any { return fields{"mutate": fields{"patchStrategicMerge": of}} }
	const key, other, field = "{{ s.key }}", "{{ s.other }}", "{{ s.field }}"
	return map[string][]map[string]any{
		"remove":       {patch(fields{"op": "remove", "path": "/data/" + key})},
		"path":         {patch(fields{"op": "remove", "path": "{{ s.path }}"})},
		"replace":      {patch(fields{"op": "replace", "path": "/data/" + key, "value": "x"})},
		"copy":         {patch(fields{"op": "copy", "from": "/data/" + key, "path": "/data/z"})},
		"move":         {patch(fields{"op": "move", "from": "/data/" + key, "path": "/data/z"})},
		"two":          {patch(fields{"op": "remove", "path": "/data/" + key}, fields{"op": "replace", "path": "/data/" + other, "value": "x"})},
		"label":        {patch(fields{"op": "remove", "path": "/metadata/labels/" + key})},
		"element":      {patch(fields{"op": "remove", "path": "/metadata/finalizers/{{ s.index }}"})},
		"insert":       {patch(fields{"op": "add", "path": "/metadata/finalizers/{{ s.index }}", "value": "example.com/d"})},
		"field":        {patch(fields{"op": "remove", "path": "/" + field})},
		"null":         {merge(fields{"data": fields{key: nil}})},
		"null field":   {merge(fields{field: nil})},
		"merged":       {merge(fields{"data": fields{key: "x"}})},
		"merged field": {merge(fields{field: fields{"y": "eA=="}})},
		"put back":     {patch(fields{"op": "remove", "path": "/data/" + key}), merge(fields{"data": fields{"alpha": "1", "bravo": "2"}})},
		"grows":        {merge(fields{"data": fields{key + "-{{ length(keys(request.object.data)) }}": "x"}})},
		"gone again": {
			patch(fields{"op": "add", "path": "/data/x-" + key, "value": "x"}), patch(fields{"op": "remove", "path": "/data/x-" + key}), merge(fields{"data": fields{"z": "x"}}),
		},
		"each": {fields{"mutate": fields{"foreach": []any{fields{
			"list": "['alpha', 'bravo']", "preconditions": fields{"all": []any{fields{"key": "{{ element }}", "operator": "Equals", "value": key}}},
			"patchesJson6902": `[{"op": "remove", "path": "/data/{{ element }}"}]`,
		}}}}},
		"condition": {merge(fields{"data": fields{"z": "{{ s.key == 'alpha' && 'one' || 'two' }}"}})},
	}
}

// otherCommands compare the policies with others that write to the same places, and convert them.
func otherCommands(t *testing.T, dir string) [][]string {
	t.Helper()
	other := write(t, dir, "other.json", `{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "other"}, "spec": {"rules": [{
		"name": "r", "match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]},
		"mutate": {"patchStrategicMerge": {"metadata": {"labels": {"l": "other"}}, "data": {"x": "other", "z": "other", "q": "other", "t": "other"}}}}]}}`)
	out := [][]string{
		{"convert", "--variants=0", "--unproved"},
		{"convert", "--variants=20", "--unproved"},
		{"compare", "--variants=10", "--with", other, "-o", "json"},
		{"compare", "--variants=100", "--with", other},
	}
	for _, format := range []string{"diff", "summary", "table", "markdown", "json", "yaml"} {
		out = append(out, []string{"compare", "--variants=0", "--with", other, "-o", format})
	}
	return out
}

// Which part of an object a Secret chooses is not shown: two runs that differ in nothing but what the Secret
// chooses show the same.
func TestSecretsThatDecide(t *testing.T) {
	tier.NotShort(t)
	dir := t.TempDir()
	worlds := []string{
		write(t, dir, "alpha.yaml", decidingWorld("alpha", 0)), write(t, dir, "bravo.yaml", decidingWorld("bravo", 1)),
	}
	for name, rules := range decidedRules() {
		t.Run(name, func(t *testing.T) {
			policy := write(t, dir, "policy.json", kyvernoPolicy("p", rules))
			run := func(world string, args ...string) string {
				if strings.HasPrefix(args[0], "-") {
					args = append([]string{"preview"}, args...)
				}
				_, out := secretsRun(t, slices.Concat(args[:1], []string{"configmaps", "-p", policy, "-f", world}, args[1:])...)
				if slices.Contains(args, "--report") {
					report, err := os.ReadFile(filepath.Join(dir, "html"))
					if err != nil {
						t.Fatal(err)
					}
					out += unpacked(t, string(report))
				}
				return strings.ReplaceAll(out, world, "WORLD")
			}
			if cmp.Equal(run(worlds[0], "-o", "json", "--show-secrets"), run(worlds[1], "-o", "json", "--show-secrets")) {
				t.Fatal("the Secret decides nothing: " + run(worlds[0], "-o", "json", "--show-secrets", "--explain"))
			}
			formats := append(secretFormats(), []string{"--report", "html=" + filepath.Join(dir, "html")})
			for i, args := range append(formats, otherCommands(t, dir)...) {
				if (i+len(name))%tier.Pick(5, 1) > 0 {
					continue // TestSecretsOfPlaces has every format on a push
				}
				if diff := cmp.Diff(run(worlds[0], args...), run(worlds[1], args...)); diff != "" {
					t.Errorf("%v: what is shown depends on the Secret:\n%s", args, diff)
				}
			}
			if code, out := secretsRun(t, "preview", "configmaps", "-p", policy, "-f", worlds[0]); code == plugin.ExitNothing {
				t.Errorf("exit code %d: %s", code, out)
			}
		})
	}
}

// A Secret names a target that is not there, which has no states to compare.
func TestSecretsThatNameNoTarget(t *testing.T) {
	dir := t.TempDir()
	rules := []map[string]any{{"mutate": fields{
		"targets":             []any{fields{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "{{ s.key }}"}},
		"patchStrategicMerge": fields{"data": fields{"x": "{{ s.key }}"}},
	}}}
	policy := write(t, dir, "policy.json", kyvernoPolicy("p", rules))
	world := write(t, dir, "world.yaml", decidingWorld("alpha", 0))
	for _, args := range otherCommands(t, dir) {
		if args[0] != "compare" {
			continue
		}
		if code, out := secretsRun(t, slices.Concat(args[:1], []string{"configmaps", "-p", policy, "-f", world}, args[1:])...); code != plugin.ExitIncomplete {
			t.Errorf("%v: exit code %d: %s", args, code, out)
		}
	}
}
