package formats_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/clusterreport"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
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

// Every report is as the published schema says, which knows every field that one can have, and no other.
func TestSchemas(t *testing.T) {
	for schema, o := range map[string]output.Options{previewSchema: {}, applySchema: {Writes: true}, compareSchema: {Compares: true}, summarySchema: {}} {
		used := map[string]bool{}
		for _, name := range []string{formats.JSON, formats.YAML} {
			f := shownFormat{name: name, Options: o}
			shown, _ := f.print(t, only("operation", "auto"))
			text := []byte(shown)
			if schema == summarySchema {
				text = fullSummary(t)
			}
			asJSON, err := yaml.YAMLToJSON(text)
			if err != nil {
				t.Fatal(err)
			}
			report, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
			if err == nil {
				err = compiled(t, schema).Validate(report)
			}
			if err != nil {
				t.Errorf("%s, %s: %v", schema, name, err)
			}
			keys(report, used)
		}
		published, err := os.ReadFile(schema)
		if err != nil {
			t.Fatal(err)
		}
		var whole map[string]any
		if err := json.Unmarshal(published, &whole); err != nil {
			t.Fatal(err)
		}
		promised := map[string]bool{}
		properties(whole, promised)
		for name := range promised {
			if !used[name] {
				t.Errorf("%s: no report has %s", schema, name)
			}
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
