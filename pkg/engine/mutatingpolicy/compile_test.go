package mutatingpolicy_test

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/mutatingpolicy"
)

// Each case of testdata/compile holds policies, perhaps objects, an origin and an
// --only or --skip, and says what compiling gives: what is reported, the rules in
// order, what is worth listing, and what becomes of the objects, with reasons.
func TestCompile(t *testing.T) {
	files, err := filepath.Glob("testdata/compile/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { checkCompile(t, file) })
	}
}

func checkCompile(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, f := range archive.Files {
		sections[f.Name] = string(f.Data)
	}
	got := compiled(t, sections)
	if *update {
		archive.Files[len(archive.Files)-1].Data = []byte(got)
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(sections["want"], got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func compiled(t *testing.T, sections map[string]string) string {
	var out strings.Builder
	c := engine.Compilation{Limits: engine.DefaultLimits(), Warn: func(e engine.CompileError) { fmt.Fprintf(&out, "warning: %v\n", &e) }}
	for i, u := range objects(t, sections["policy.yaml"]) {
		origin := strings.TrimSpace(sections["origin"])
		if origin == "" {
			origin = fmt.Sprintf("policy.yaml:%d", i+1)
		}
		c.Documents = append(c.Documents, engine.Document{Object: u, Origin: origin})
	}
	c.Rules.Only, c.Rules.Skip = strings.Fields(sections["only"]), strings.Fields(sections["skip"])
	program, err := mutatingpolicy.New(project).Compile(c)
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
		_, target.Request.Reinvocation = sections["reinvocation"]
		fmt.Fprintf(&out, "on %s:\n", target.Key)
		if _, err := program.Evaluate(t.Context(), target, cluster.World, reasons{&out}); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

func objects(t testing.TB, text string) []*unstructured.Unstructured {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096)
	var out []*unstructured.Unstructured
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, u)
	}
}

func selectionText(s engine.Selection) string {
	text := fmt.Sprintf("%s/%s %s", s.Group, s.ReadAs, s.Resource)
	if s.Subresource != "" {
		text += "/" + s.Subresource
	}
	if s.Namespace != "" {
		text += " in " + s.Namespace
	}
	if s.Name != "" {
		text += " named " + s.Name
	}
	if s.Labels != nil {
		text += " with " + metav1.FormatLabelSelector(s.Labels)
	}
	return text
}

// reasons prints steps as they come, reasons of all outcomes included.
type reasons struct{ io.Writer }

func (reasons) Wants(engine.Outcome) bool { return true }

func (reasons) NotMatched(engine.RuleList) {}

func (r reasons) Step(s engine.Step) {
	fmt.Fprintf(r, "  %s %s", s.Outcome, s.Rule)
	if s.NotIdempotent != "" {
		fmt.Fprintf(r, " (not idempotent: %s)", s.NotIdempotent)
	}
	if s.Err != nil {
		fmt.Fprintf(r, ": %v", s.Err)
	}
	for _, w := range s.Warnings {
		fmt.Fprintf(r, "; warning: %s", w)
	}
	fmt.Fprintln(r)
}

func TestAccepts(t *testing.T) {
	d := mutatingpolicy.New(nil)
	for gk, want := range map[schema.GroupKind]engine.Role{
		{Group: "policies.kyverno.io", Kind: "MutatingPolicy"}:           engine.Policy,
		{Group: "policies.kyverno.io", Kind: "NamespacedMutatingPolicy"}: engine.Policy,
		{Group: "policies.kyverno.io", Kind: "PolicyException"}:          engine.Input,
		{Group: "kyverno.io", Kind: "GlobalContextEntry"}:                engine.Input,
		{Group: "policies.kyverno.io", Kind: "ValidatingPolicy"}:         engine.Foreign,
		{Group: "kyverno.io", Kind: "PolicyException"}:                   engine.Foreign,
		{Group: "example.com", Kind: "MutatingPolicy"}:                   engine.Foreign,
	} {
		if got := d.Accepts(gk); got != want {
			t.Errorf("%s: role %d, want %d", gk, got, want)
		}
	}
}
