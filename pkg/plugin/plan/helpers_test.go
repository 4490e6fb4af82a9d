package plan_test

import (
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

var created = time.Date(2026, 1, 2, 15, 4, 5, 6789, time.UTC)

// sections reads the sections of a txtar file by name.
func sections(t testing.TB, file string) map[string]string {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range archive.Files {
		out[f.Name] = string(f.Data)
	}
	return out
}

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		t.Fatal("a section is missing")
	}
	u := &unstructured.Unstructured{}
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := u.UnmarshalJSON(asJSON); err != nil {
		t.Fatal(err)
	}
	return u
}

var rule = engine.RuleRef{Dialect: "kyverno", Policy: "team", Rule: "label", Origin: "team.yaml:1"}

// change is what one rule made of an object.
func change(before, after *unstructured.Unstructured) engine.Change {
	c := engine.Change{Subject: engine.KeyOf(before), Before: before, After: after, Scoped: true}
	for _, f := range diff.Compare(before.Object, after.Object, diff.Type{}) {
		f.Rule = rule
		c.Fields = append(c.Fields, f)
	}
	if len(c.Fields) == 0 {
		c.After = before
		return c
	}
	c.Steps = []engine.Step{{Rule: rule, Outcome: engine.Changed, After: after}}
	return c
}

// planOf is the plan of a file's sections before.yaml and after.yaml.
func planOf(t testing.TB, file string) *plan.Plan {
	t.Helper()
	s := sections(t, file)
	before, after := object(t, s["before.yaml"]), object(t, s["after.yaml"])
	c := change(before, after)
	summary := evaluation.NewSummary([]engine.RuleRef{rule})
	summary.Add(&c)
	policy := engine.NewDocument(object(t, s["policy.yaml"]), "team.yaml:1")
	documents, digest, err := plan.DocumentsOf([]engine.Document{policy}, func(engine.Document) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	e := plan.NewEntry(&c)
	return &plan.Plan{
		Run: plan.Run{
			Cluster: plan.Cluster{UID: "u", Server: "https://127.0.0.1", Context: "prod"}, Version: "v1.2.3",
			Created: created, Seed: 1<<64 - 1, Choice: plan.Choice{Namespace: "shop", Operation: engine.OperationUpdate},
			Documents: documents, Digest: digest,
		},
		Summary: *summary, Entries: []*plan.Entry{&e},
	}
}
