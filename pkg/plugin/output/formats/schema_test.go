package formats_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/clusterreport"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/internal/outputtest"
)

// The published schemas.
const (
	previewSchema = "../../../../docs/report.schema.json"
	applySchema   = "../../../../docs/apply-report.schema.json"
	compareSchema = "../../../../docs/comparison-report.schema.json"
	summarySchema = "../../../../docs/summary.schema.json"
)

func compiled(t *testing.T, file string) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile(file)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// readReport reads a report as a consumer would.
func readReport(t *testing.T, text []byte) any {
	t.Helper()
	report, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return report
}

// Every report of the golden cases is as the published schema says, explained or not.
func TestPreviewSchema(t *testing.T) {
	s := compiled(t, previewSchema)
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == "given.yaml" })
		if i < 0 {
			continue
		}
		for _, explain := range []bool{false, true} {
			var g given
			if err := yaml.UnmarshalStrict(archive.Files[i].Data, &g); err != nil {
				t.Fatal(err)
			}
			g.Explain, g.Query = explain, ""
			if err := s.Validate(readReport(t, []byte(print(t, formats.JSON, &g)))); err != nil {
				t.Errorf("%s: %v", file, err)
			}
			asJSON, err := yaml.YAMLToJSON([]byte(print(t, formats.YAML, &g)))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Validate(readReport(t, asJSON)); err != nil {
				t.Errorf("%s as YAML: %v", file, err)
			}
			checked++
		}
	}
	if checked == 0 {
		t.Error("no reports")
	}
}

// fullReport holds every field that a report can have.
func fullReport(t *testing.T) []byte {
	t.Helper()
	rule := engine.RuleRef{Dialect: "admissionpolicy", Policy: "p", Rule: "r", Via: "binding", Origin: "p.yaml:1", Severity: "high"}
	key := engine.ObjectKey{Version: "v1", Namespace: "shop", Name: "c", UID: "u", Subresource: "status", Cluster: "a"}
	key.Kind = "ConfigMap"
	name := "data"
	path := fieldpath.Path{{FieldName: &name}}
	c := engine.Change{
		Subject: key,
		Before:  object(map[string]any{"data": "a"}), After: object(map[string]any{"data": "b"}),
		Fields:     []engine.FieldChange{{Path: path, Kind: engine.Replaced, From: "a", To: "b", Rule: rule}},
		NotMatched: engine.RuleSet{Rules: []engine.RuleRef{rule}},
		Impacts:    []engine.Impact{{Code: engine.ImpactRollout, Text: "t", Advice: "a", Fields: []fieldpath.Path{path}, Owner: "o", Pods: 2}},
		Steps: []engine.Step{{
			Rule: rule, Trigger: key, TriggerChangedBy: []engine.RuleRef{rule}, Outcome: engine.Failed, AsCreated: true, NotIdempotent: "n",
			Warnings: []engine.Warning{"w"}, Err: errors.New("e"), Fields: []engine.FieldChange{{Path: path}},
		}},
	}
	var out bytes.Buffer
	p, err := formats.NewPreview(formats.JSON, output.Options{Out: &out, Context: output.Context{
		Context: "c", Server: "s", User: "u", Namespace: "n", Operation: "auto", Version: "v", Time: "2026-01-02T15:04:05Z",
	}})
	if err != nil {
		t.Fatal(err)
	}
	summary := evaluation.NewSummary(nil)
	summary.Add(&c)
	summary.Canary = &evaluation.Canary{Percent: 10, LeftOut: 9, MaxObjects: 1, More: true}
	summary.Outdated = []string{"ConfigMap shop/a"}
	summary.Overlay = map[string]int{"ConfigMap": 2}
	if err := errors.Join(p.Print(fleet()), p.Print(output.Evaluated{Change: &c}), p.Print(output.Problem{Err: errors.New("e")}), outputtest.End(p, *summary)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// fleet is what came of two clusters.
func fleet() output.Event {
	return output.Fleet{Clusters: []output.Cluster{{Name: "a", Server: "s", Objects: 1, Changed: 1, Failed: 1, Pods: 2}, {Name: "b", Problems: 1, Err: errors.New("e")}}}
}

// fullComparison holds every field that the report of a comparison can have.
func fullComparison(t *testing.T) []byte {
	t.Helper()
	rule := engine.RuleRef{Dialect: "admissionpolicy", Policy: "p", Rule: "r", Via: "binding", Origin: "p.yaml:1", Severity: "high"}
	key := engine.ObjectKey{Version: "v1", Namespace: "shop", Name: "c", UID: "u", Subresource: "status", Cluster: "a"}
	key.Kind = "ConfigMap"
	name := "data"
	field := engine.FieldChange{Path: fieldpath.Path{{FieldName: &name}}, Kind: engine.Replaced, From: "a", To: "b"}
	side := func(value string) *engine.Change {
		return &engine.Change{Subject: key, Before: object(map[string]any{}), After: object(map[string]any{"data": value}), Steps: []engine.Step{{
			Rule: rule, Trigger: key, TriggerChangedBy: []engine.RuleRef{rule}, Outcome: engine.Failed, AsCreated: true, NotIdempotent: "n",
			Warnings: []engine.Warning{"w"}, Err: errors.New("e"), Fields: []engine.FieldChange{{Path: field.Path}},
		}}}
	}
	result := &compare.Result{
		Subject: key, Target: engine.Target{Origin: "f:1"}, Verdict: compare.Differs, Operations: []engine.Operation{engine.OperationCreate},
		Changes: [2]*engine.Change{side("a"), side("b")}, Fields: []compare.Field{{FieldChange: field, Rules: [2]engine.RuleRef{rule, rule}}},
	}
	result.Variant = &compare.Variant{Count: 1, Kinds: []string{"ConfigMap"}, Object: object(map[string]any{}), Request: engine.Request{User: engine.UserInfo{Username: "alice", Groups: []string{"admins"}}, DryRun: true}, Beside: []*unstructured.Unstructured{object(map[string]any{"data": "x"})}, Missing: []string{"m"}}
	exercise := []compare.Exercise{{
		Variants: 1, Rule: rule, Outcomes: map[engine.Outcome]int{engine.Skipped: 1}, HeldBack: map[string]int{"h": 1}, Missing: "m",
	}}
	var out bytes.Buffer
	p, err := formats.NewComparison(formats.JSON, output.Options{Out: &out, Context: output.Context{
		Context: "c", Server: "s", User: "u", Namespace: "n", Operation: "auto", Version: "v", Time: "2026-01-02T15:04:05Z",
	}})
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(
		p.Print(fleet()), p.Print(output.Compared{Result: result, Difference: result.Difference()}), p.Print(output.Problem{Err: errors.New("e")}),
		p.Print(output.Comparison{Summary: compare.Summary{
			Conclusion: compare.SomeDiffer, Objects: 3, Changed: 1, Verdicts: map[compare.Verdict]int{compare.Differs: 1},
			Reordered: 1, Failed: 1, Operations: result.Operations, Rules: [2][]compare.Exercise{exercise, exercise},
			Variants: compare.VariantSummary{Compared: 1, Limit: 1},
		}}), p.Close())
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// fullSummary holds every field that the summary of reports can have.
func fullSummary(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	s := clusterreport.Summary{Objects: 4, Rules: []clusterreport.Count{{Policy: "p", Rule: "r", Fail: 1, Error: 2, Skip: 3, Pass: 4}, {Policy: "p.yaml:1", Error: 1}}}
	if err := s.Print(&out, false); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// The schemas know every field that a report can have, and no other.
func TestSchemasAreComplete(t *testing.T) {
	for file, text := range map[string][]byte{previewSchema: fullReport(t), applySchema: fullApplyReport(t), compareSchema: fullComparison(t), summarySchema: fullSummary(t)} {
		report := readReport(t, text)
		if err := compiled(t, file).Validate(report); err != nil {
			t.Error(err)
		}
		published, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var whole map[string]any
		if err := json.Unmarshal(published, &whole); err != nil {
			t.Fatal(err)
		}
		promised, used := map[string]bool{}, map[string]bool{}
		properties(whole, promised)
		keys(report, used)
		for _, free := range []string{"data", "not-matched", "conflicted", "differs", "ConfigMap"} { // the object's own, outcomes, verdicts and kinds
			delete(used, free)
		}
		if file != compareSchema { // of which it is a field
			delete(used, "failed")
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(promised)), slices.Sorted(maps.Keys(used))); diff != "" {
			t.Errorf("%s: -schema +report:\n%s", file, diff)
		}
	}
}

// properties collects the names of all properties of a schema.
func properties(v any, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		named, _ := v["properties"].(map[string]any)
		for name := range named {
			into[name] = true
		}
		for _, below := range v {
			properties(below, into)
		}
	case []any:
		for _, below := range v {
			properties(below, into)
		}
	}
}

// keys collects the names of all fields of a report.
func keys(v any, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, below := range v {
			into[name] = true
			keys(below, into)
		}
	case []any:
		for _, below := range v {
			keys(below, into)
		}
	}
}
