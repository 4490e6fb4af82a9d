package kyverno

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
)

// Each case of testdata/compile holds policies, perhaps objects and an --only or
// --skip, and says what compiling gives: the rules in order, what is worth
// listing, what is reported, and why rules do not match the objects.
func TestCompile(t *testing.T) { checkGolden(t, "testdata/compile", compiled) }

// checkGolden checks every archive of a directory: its last file is what comes of the
// others.
func checkGolden(t *testing.T, dir string, result func(t *testing.T, sections map[string][]byte) string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sections := map[string][]byte{}
			for _, f := range archive.Files {
				sections[f.Name] = f.Data
			}
			got, want := result(t, sections), &archive.Files[len(archive.Files)-1].Data
			if *update {
				*want = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(*want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func compiled(t *testing.T, sections map[string][]byte) string {
	var out strings.Builder
	c := engine.Compilation{Limits: engine.DefaultLimits(), Warn: func(e engine.CompileError) { fmt.Fprintf(&out, "warning: %v\n", &e) }}
	for i, u := range objects(t, sections["policy.yaml"]) {
		c.Documents = append(c.Documents, engine.Document{Object: u, Origin: fmt.Sprintf("policy.yaml:%d", i+1)})
	}
	c.Rules.Only, c.Rules.Skip = strings.Fields(string(sections["only"])), strings.Fields(string(sections["skip"]))
	program, err := New().Compile(c)
	if err != nil {
		fmt.Fprintf(&out, "%v\n", err)
	}
	for _, r := range program.Rules() {
		fmt.Fprintf(&out, "rule %s\n", r)
	}
	for _, s := range program.Selections() {
		fmt.Fprintf(&out, "selects %s\n", selectionText(s))
	}
	live := objects(t, sections["live.yaml"])
	cluster, err := conformance.NewCluster(live, nil, engine.Request{})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range live {
		target := targetOf(u)
		target.Request.User.Username = strings.TrimSpace(string(sections["user"]))
		fmt.Fprintf(&out, "on %s:\n", target.Key)
		if _, err := program.Evaluate(t.Context(), target, cluster.World, reasons{&out}); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// reasons is a Sink that asks for every reason.
type reasons struct{ io.Writer }

func (r reasons) Wants(engine.Outcome) bool { return true }

func (reasons) NotMatched(engine.RuleList) {}

func (r reasons) Step(s engine.Step) {
	fmt.Fprintf(r, "  %s %s", s.Rule, s.Outcome)
	if s.Err != nil {
		fmt.Fprintf(r, ": %v", s.Err)
	}
	if s.NotIdempotent != "" {
		fmt.Fprintf(r, "; not idempotent: %s", s.NotIdempotent)
	}
	fmt.Fprintln(r)
}

func selectionText(s engine.Selection) string {
	text := fmt.Sprintf("group=%q version=%q kind=%q", s.Group, s.Version, s.Kind)
	if s.Namespace != "" {
		text += " namespace=" + s.Namespace
	}
	if s.Name != "" {
		text += " name=" + s.Name
	}
	if s.Labels != nil {
		text += " labels=" + s.Labels.String()
	}
	return text
}

func objects(t testing.TB, text []byte) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if u.Object != nil {
			out = append(out, u)
		}
	}
}

func TestAccepts(t *testing.T) {
	for _, tc := range []struct {
		group, kind string
		want        engine.Role
	}{
		{"kyverno.io", "ClusterPolicy", engine.Policy},
		{"kyverno.io", "Policy", engine.Policy},
		{"kyverno.io", "PolicyException", engine.Input},
		{"kyverno.io", "GlobalContextEntry", engine.Input},
		{"kyverno.io", "CleanupPolicy", engine.Foreign},
		{"policies.kyverno.io", "MutatingPolicy", engine.Foreign},
		{"", "ConfigMap", engine.Foreign},
	} {
		if got := New().Accepts(schema.GroupKind{Group: tc.group, Kind: tc.kind}); got != tc.want {
			t.Errorf("%s of %s: %d, want %d", tc.kind, tc.group, got, tc.want)
		}
	}
}
