package gatekeeper_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/gatekeeper"
)

// TestCompile runs the files of testdata/compile: each document, and behind
// "# error:" and "# warning:" all that is said of it.
func TestCompile(t *testing.T) {
	for _, name := range []string{"refused", "warned"} {
		path := filepath.Join("testdata", "compile", name+".txtar")
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, file := range archive.Files {
			want, document := splitComments(string(file.Data))
			got := compileSays(t, document)
			archive.Files[i].Data = []byte(got + document)
			if diff := cmp.Diff(want, got); diff != "" && !*update {
				t.Errorf("%s (-want +got) %s", file.Name, diff)
			}
		}
		if *update {
			if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func splitComments(text string) (comments, rest string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			comments += line
		} else {
			rest += line
		}
	}
	return comments, rest
}

// compileSays is a comment for each error and each warning.
func compileSays(t *testing.T, document string) string {
	t.Helper()
	var said strings.Builder
	_, err := gatekeeper.New().Compile(engine.Compilation{
		Documents: []engine.Document{engine.NewDocument(object(t, []byte(document)), "")},
		Warn:      func(e engine.CompileError) { fmt.Fprintf(&said, "# warning: %s: %v\n", e.Field, e.Err) },
	})
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			var c *engine.CompileError
			if !errors.As(e, &c) {
				t.Fatalf("%v is no CompileError", e)
			}
			fmt.Fprintf(&said, "# error: %s: %v\n", c.Field, c.Err)
		}
	}
	return said.String()
}

func object(t testing.TB, text []byte) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return u
}

// label is an AssignMetadata that adds a label where another one is.
func label(t testing.TB, name, add, where string) engine.Document {
	return engine.NewDocument(object(t, fmt.Appendf(nil, `
apiVersion: mutations.gatekeeper.sh/v1
kind: AssignMetadata
metadata: {name: %s}
spec: {match: {labelSelector: {matchLabels: {%s: "1"}}}, location: metadata.labels.%s, parameters: {assign: {value: "1"}}}`, name, where, add)), "")
}

func pod(t testing.TB) engine.Target {
	u := object(t, []byte(`{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop, labels: {a: "1"}}}`))
	return engine.Target{Key: engine.KeyOf(u), Object: u, OldObject: u}
}

// steps is a Sink that keeps all steps.
type steps []engine.Step

func (*steps) Wants(engine.Outcome) bool { return true }

func (s *steps) Step(step engine.Step) { *s = append(*s, step) }

func (s *steps) String() string {
	var lines []string
	for _, step := range *s {
		lines = append(lines, strings.TrimSuffix(fmt.Sprintf("%s %s: %v", step.Outcome, step.Rule, step.Err), ": <nil>"))
	}
	return strings.Join(lines, "\n")
}

func chain(t testing.TB) []engine.Document {
	return []engine.Document{label(t, "m1", "d", "c"), label(t, "m2", "c", "b"), label(t, "m3", "b", "a")}
}

func TestEvaluateRounds(t *testing.T) {
	got, said := evaluate(t, chain(t), pod(t))
	if want := (map[string]string{"a": "1", "b": "1", "c": "1", "d": "1"}); !cmp.Equal(want, got.GetLabels()) {
		t.Errorf("labels are %v", got.GetLabels())
	}
	if want := "changed m3\nchanged m2\nchanged m1"; said != want {
		t.Errorf("\n got %s\nwant %s", said, want)
	}
}

func TestEvaluateNotConverging(t *testing.T) {
	target, long := pod(t), []engine.Document{label(t, "m100", "l100", "a")}
	for i := range 100 { // a round comes as far as the next one
		long = append(long, label(t, fmt.Sprintf("m%03d", i), fmt.Sprintf("l%d", i), fmt.Sprintf("l%d", i+1)))
	}
	got, said := evaluate(t, long, target)
	if got != target.Object {
		t.Errorf("the object is changed: %v", got)
	}
	const reason = "mutation not converging: the object still changes after 100 rounds, the limit of this program; Gatekeeper refuses such an object at admission"
	if want := "not-matched m000: labelSelector: wants l1=1, is a=1\nfailed m001: " + reason; !strings.HasPrefix(said, want) {
		t.Errorf("\n got %.300s\nwant %s", said, want)
	}
}

func TestEvaluateNamespaceUnreadable(t *testing.T) {
	selecting := engine.NewDocument(object(t, []byte(`
apiVersion: mutations.gatekeeper.sh/v1
kind: AssignMetadata
metadata: {name: a1}
spec: {match: {namespaceSelector: {matchLabels: {team: web}}}, location: metadata.labels.e, parameters: {assign: {value: "1"}}}`)), "")
	got, said := evaluate(t, append(chain(t), selecting), pod(t))
	if got.GetLabels()["d"] != "1" || got.GetLabels()["e"] != "" {
		t.Errorf("labels are %v", got.GetLabels())
	}
	if want := "failed a1: failed to run Match criteria: namespace selector for namespace-scoped object but missing Namespace: shop cannot be read"; !strings.HasPrefix(said, want) {
		t.Errorf("said %s", said)
	}
}

func TestSelections(t *testing.T) {
	for _, c := range []struct {
		says, kind, spec string
		want             []engine.Selection
	}{
		{"everything", "AssignMetadata", "", []engine.Selection{{Group: "*", Kind: "*"}}},
		{
			"kinds of a group", "AssignMetadata", "match: {kinds: [{apiGroups: [apps], kinds: [Deployment, StatefulSet]}]}",
			[]engine.Selection{{Group: "apps", Kind: "Deployment"}, {Group: "apps", Kind: "StatefulSet"}},
		},
		{
			"namespaces, and what they are called", "AssignMetadata", "match: {namespaces: [shop]}",
			[]engine.Selection{{Group: "*", Kind: "*", Namespace: "shop"}, {Kind: "Namespace", Name: "shop"}},
		},
		{
			"types of applyTo that match leaves over", "Assign",
			`applyTo: [{groups: ["", apps], versions: [v1], kinds: [Pod, Deployment]}], match: {kinds: [{apiGroups: [apps], kinds: [Deployment]}], name: web}`,
			[]engine.Selection{{Group: "apps", Version: "v1", Kind: "Deployment", Name: "web"}},
		},
		{"a wildcard that is none", "Assign", `applyTo: [{groups: ["*"], versions: [v1], kinds: [Pod]}]`, nil},
		{"nothing is generated", "AssignMetadata", "match: {source: Generated}", nil},
	} {
		t.Run(c.says, func(t *testing.T) {
			location := map[string]string{"Assign": "spec.a", "AssignMetadata": "metadata.labels.a"}[c.kind]
			text := fmt.Sprintf(`{apiVersion: mutations.gatekeeper.sh/v1, kind: %s, metadata: {name: a}, spec: {location: %s, parameters: {assign: {value: b}}, %s}}`, c.kind, location, c.spec)
			program, err := gatekeeper.New().Compile(engine.Compilation{Documents: []engine.Document{engine.NewDocument(object(t, []byte(text)), "")}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, program.Selections()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzCompile holds that no string, read as a mutator, makes compiling or evaluating
// it panic.
func FuzzCompile(f *testing.F) {
	for _, name := range []string{"refused", "warned"} {
		archive, err := txtar.ParseFile("testdata/compile/" + name + ".txtar")
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			f.Add(string(file.Data))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			return
		}
		for _, kind := range []string{"Assign", "AssignImage", "AssignMetadata", "ModifySet"} {
			u := &unstructured.Unstructured{}
			if err := u.UnmarshalJSON(raw); err != nil {
				u.Object = map[string]any{"spec": text}
			}
			u.SetAPIVersion("mutations.gatekeeper.sh/v1")
			u.SetKind(kind)
			program, _ := gatekeeper.New().Compile(engine.Compilation{Documents: []engine.Document{engine.NewDocument(u, "")}})
			if _, err := program.Evaluate(t.Context(), pod(t), &engine.World{}, &steps{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func evaluate(t *testing.T, documents []engine.Document, target engine.Target) (*unstructured.Unstructured, string) {
	t.Helper()
	program, err := gatekeeper.New().Compile(engine.Compilation{Documents: documents})
	if err != nil {
		t.Fatal(err)
	}
	var said steps
	out, err := program.Evaluate(t.Context(), target, &engine.World{}, &said)
	if err != nil {
		t.Fatal(err)
	}
	return out, said.String()
}
