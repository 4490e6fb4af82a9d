package policies

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/internal/hostile"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/permission"
)

func spec() jobSpec {
	return jobSpec{Name: "mutate", Namespace: "ops", Image: "registry.example/kubectl-mutate:v1", Shards: 1, Command: []string{"preview"}}
}

func TestValidate(t *testing.T) {
	long := strings.Repeat("a", 53)
	for name, c := range map[string]struct {
		change func(*jobSpec)
		want   string // of the error; empty for none
	}{
		"a Job":                         {func(*jobSpec) {}, ""},
		"a CronJob":                     {func(s *jobSpec) { s.Schedule = "17 * * * *" }, ""},
		"a macro":                       {func(s *jobSpec) { s.Schedule = "@hourly" }, ""},
		"the 29th of February":          {func(s *jobSpec) { s.Schedule = "0 0 29 2 *" }, ""},
		"a long name of a Job":          {func(s *jobSpec) { s.Name = long }, ""},
		"the longest name of a CronJob": {func(s *jobSpec) { s.Name, s.Schedule = long[1:], "@daily" }, ""},
		"a digest":                      {func(s *jobSpec) { s.Image = "a/b@sha256:" + strings.Repeat("0", 64) }, ""},
		"too long a name of a CronJob":  {func(s *jobSpec) { s.Name, s.Schedule = long, "@daily" }, `has 53 characters; the name of a CronJob may have at most 52`},
		"one whose Pods have an index":  {func(s *jobSpec) { s.Name, s.Schedule, s.Shards = long[3:], "@daily", 16 }, `has 50 characters; the name of a CronJob with 16 shards may have at most 49`},
		"too long a name of a Job":      {func(s *jobSpec) { s.Name = strings.Repeat("a", 64) }, "--name"},
		"a name in capitals":            {func(s *jobSpec) { s.Name = "Mutate" }, "lower-case letters, digits"},
		"a name that is a command":      {func(s *jobSpec) { s.Name = "a$(id)" }, "--name"},
		"a namespace with a slash":      {func(s *jobSpec) { s.Namespace = "a/b" }, "-n"},
		"no image":                      {func(s *jobSpec) { s.Image = "" }, "--image"},
		"an image with a line":          {func(s *jobSpec) { s.Image = "a\nb" }, "--image"},
		"a claim with a slash":          {func(s *jobSpec) { s.Claim = "../a" }, "--claim"},
		"no shards":                     {func(s *jobSpec) { s.Shards = 0 }, "--shards 0: must be between 1 and 100000"},
		"shards below 0":                {func(s *jobSpec) { s.Shards = -1 }, "--shards -1: must be between 1 and 100000"},
		"a schedule of six fields":      {func(s *jobSpec) { s.Schedule = "0 17 * * * *" }, "it has five fields"},
		"a minute that there is not":    {func(s *jobSpec) { s.Schedule = "60 * * * *" }, "--schedule"},
		"a word":                        {func(s *jobSpec) { s.Schedule = "hourly" }, "--schedule"},
		"a time zone":                   {func(s *jobSpec) { s.Schedule = "TZ=UTC 0 * * * *" }, "takes no TZ="},
		"a day that never comes":        {func(s *jobSpec) { s.Schedule = "0 0 31 2 *" }, "such a day never comes"},
	} {
		t.Run(name, func(t *testing.T) {
			s := spec()
			c.change(&s)
			err := s.validate()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func policy(name, text string) engine.Document {
	return engine.NewDocument(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": map[string]any{"name": name}, "spec": map[string]any{"text": text},
	}}, name+".yaml:1")
}

// printed returns the manifests as YAML, and what a server reads.
func printed(t *testing.T, s jobSpec) (text string, objects []map[string]any, notes []string) {
	t.Helper()
	made, notes, err := s.manifests()
	if err != nil {
		t.Fatal(err)
	}
	var out, list bytes.Buffer
	if err := errors.Join(permission.PrintYAML(&out, made, notes), permission.PrintJSON(&list, made)); err != nil {
		t.Fatal(err)
	}
	var asJSON struct{ Items []map[string]any }
	if err := json.Unmarshal(list.Bytes(), &asJSON); err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(out.String(), "\n---\n") {
		var object map[string]any
		if err := yaml.UnmarshalStrict([]byte(document+"\n"), &object); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		objects = append(objects, object)
	}
	if diff := cmp.Diff(asJSON.Items, objects); diff != "" {
		t.Errorf("YAML is not what JSON is (-json +yaml):\n%s", diff)
	}
	return out.String(), objects, notes
}

// Policies are divided so that kubectl apply takes each ConfigMap, and none is lost.
func TestLargePolicies(t *testing.T) {
	s := spec()
	for i := range 9 {
		s.Policies = append(s.Policies, policy(fmt.Sprint("p", i), strings.Repeat("ä\n", 20_000)))
	}
	s.Policies = append(s.Policies, policy("huge", strings.Repeat("x", 300_000)))
	_, objects, notes := printed(t, s)
	policies, maps := 0, 0
	for _, o := range objects {
		if o["kind"] != "ConfigMap" {
			continue
		}
		maps++
		data := o["data"].(map[string]any)
		policies += len(data)
		if content, _ := json.Marshal(o); len(content) > 256<<10 && len(data) > 1 {
			t.Errorf("a ConfigMap of %d policies has %d bytes", len(data), len(content))
		}
	}
	if policies != len(s.Policies) || maps < 3 {
		t.Errorf("%d policies in %d ConfigMaps", policies, maps)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "huge.yaml:1 is too large for a client-side apply") {
		t.Errorf("notes: %q", notes)
	}
	s.Policies = append(s.Policies, policy("larger", strings.Repeat("x", 1<<20)))
	if _, _, err := s.manifests(); err == nil || !strings.HasPrefix(err.Error(), "larger.yaml:1: ") {
		t.Errorf("got %v", err)
	}
}

func TestSecretAmongPolicies(t *testing.T) {
	s := spec()
	s.Policies = []engine.Document{policy("a", ""), engine.NewDocument(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "token"}, "data": map[string]any{"t": "czNjcjN0"},
	}}, "policies/b.yaml:7")}
	_, _, err := s.manifests()
	if err == nil || !strings.HasPrefix(err.Error(), "policies/b.yaml:7: Secret token: ") || strings.Contains(err.Error(), "czNj") {
		t.Errorf("got %v", err)
	}
}

// No text of a policy, and no argument, acts on what the manifests are pasted or piped into; a server reads
// what was meant.
func TestHostileTexts(t *testing.T) {
	var texts []string
	for _, t := range hostile.Texts() {
		if utf8.ValidString(t.Text) { // as all that is read from YAML
			texts = append(texts, t.Text)
		}
	}
	for _, text := range append(texts, "a\n  $(touch /tmp/x)\n", "$(JOB_COMPLETION_INDEX)", "a\n::error::b\n", "a\n  ##vso[x]\n", "a\nb\\\n", "EOF\n`id`\n!x\n") {
		s := spec()
		named := policy("p", text)
		named.Object().SetName(text)
		s.Policies = []engine.Document{engine.NewDocument(named.Object(), named.Origin)}
		s.Command = append(s.Command, "--only="+text)
		s.Roles = permission.Roles("ops:mutate", []permission.Need{{Verb: "list", Resource: "pods", Why: text}}, nil, nil)
		out, objects, _ := printed(t, s)
		if err := errors.Join(hostile.Terminal(out), hostile.Runner(out)); err != nil || strings.ContainsAny(out, "$`!") {
			t.Errorf("%q: %v\n%s", text, err, out)
		}
		for _, o := range objects {
			switch o["kind"] {
			case "ConfigMap":
				for _, content := range o["data"].(map[string]any) {
					var got map[string]any
					if err := yaml.Unmarshal([]byte(content.(string)), &got); err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(s.Policies[0].Object().Object, got); diff != "" {
						t.Errorf("%q (-policy +ConfigMap):\n%s", text, diff)
					}
				}
			case "Job":
				var read struct {
					Spec struct {
						Template corev1.PodTemplateSpec `json:"template"`
					} `json:"spec"`
				}
				content, _ := json.Marshal(o)
				if err := json.Unmarshal(content, &read); err != nil {
					t.Fatal(err)
				}
				if got := read.Spec.Template.Spec.Containers[0].Args[1]; strings.ReplaceAll(got, "$$", "$") != "--only="+text || strings.Contains(strings.ReplaceAll(got, "$$", ""), "$") {
					t.Errorf("%q: argument %q", text, got)
				}
			}
		}
	}
}

// What is pasted into a shell as a here-document arrives as it is.
func TestPastedIntoAShell(t *testing.T) {
	s := spec()
	s.Policies = []engine.Document{policy("p", "$HOME `id` \\ $(id)\n"), policy("q", "plain\nlines\n")}
	out, _, _ := printed(t, s)
	got, err := exec.CommandContext(t.Context(), "sh", "-c", "cat <<EOF\n"+out+"EOF\n").Output()
	if err != nil || string(got) != out {
		t.Errorf("%v\n%s", err, cmp.Diff(out, string(got)))
	}
}
