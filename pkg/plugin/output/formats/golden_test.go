package formats_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/internal/outputtest"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
)

var update = flag.Bool("update", false, "rewrite the expected output")

// given is what a case is made of: changes whose fields belong to the rule that
// says so, or else to the last one that changed the object.
type given struct {
	ShowSecrets, Explain bool
	Query, Next          string
	GroupBy              output.GroupBy
	ListAll              bool
	ContextLines         int
	BuiltIn              bool // to the server, null and empty lists are nothing
	Changes              []struct {
		Before, After map[string]any
		Steps         []struct {
			Policy, Rule, Reason, NotIdempotent string
			Outcome                             engine.Outcome
			AsCreated                           bool
			Wrote                               []string // paths
			Warnings                            []engine.Warning
		}
		Impacts []engine.Impact
	}
}

func object(m map[string]any) *unstructured.Unstructured {
	if m == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: m}
}

func (g *given) changes() []engine.Change {
	var out []engine.Change
	for _, in := range g.Changes {
		c := engine.Change{Before: object(in.Before), After: object(in.After), Impacts: in.Impacts}
		if c.After == nil {
			c.After = c.Before
		}
		c.Subject = engine.KeyOf(c.After)
		var last engine.RuleRef
		writers := map[string]engine.RuleRef{}
		for _, s := range in.Steps {
			step := engine.Step{
				Rule:    engine.RuleRef{Dialect: "kyverno", Policy: s.Policy, Rule: s.Rule},
				Outcome: s.Outcome, AsCreated: s.AsCreated, NotIdempotent: s.NotIdempotent, Warnings: s.Warnings,
			}
			if s.Reason != "" {
				step.Err = errors.New(s.Reason)
			}
			if s.Outcome == engine.Changed {
				last = step.Rule
			}
			for _, path := range s.Wrote {
				writers[path] = step.Rule
			}
			c.Steps, c.Asked = append(c.Steps, step), append(c.Asked, step.Rule)
		}
		for _, f := range diff.Compare(in.Before, c.After.Object, diff.Type{EmptyIsAbsent: g.BuiltIn}) {
			rule, ok := writers[engine.PathString(f.Path)]
			if !ok {
				rule = last
			}
			f.Writer = new(rule)
			c.Fields = append(c.Fields, f)
		}
		out = append(out, c)
	}
	return out
}

// TestGolden prints testdata/<format>-<case>.txtar in every way it names.
func TestGolden(t *testing.T) {
	outputtest.Golden(t, "testdata/*.txtar", *update, func(t *testing.T, format string, g *given) string {
		got := print(t, format, g)
		if strings.ContainsRune(got, '\x1b') {
			t.Errorf("%s: an escape character", format)
		}
		return got
	})
}

// next is a hint to type a command.
func next(command string) func(evaluation.Summary) output.Hint {
	return func(evaluation.Summary) output.Hint { return output.Hint{Next: command} }
}

func print(t *testing.T, format string, g *given) string {
	t.Helper()
	var out bytes.Buffer
	o := output.Options{Out: &out, ShowSecrets: g.ShowSecrets, Explain: g.Explain, Query: g.Query, Hint: next(g.Next), GroupBy: g.GroupBy, ListAll: g.ListAll, ContextLines: g.ContextLines}
	p, err := formats.New(format, o)
	if err != nil {
		t.Fatal(err)
	}
	summary := outputtest.Print(t, p, g.changes())
	summary.Settle()
	if err := outputtest.End(p, *summary); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestUnknownFormat(t *testing.T) {
	_, err := formats.New("xml", output.Options{})
	var unknown *formats.UnknownFormatError
	if !errors.As(err, &unknown) || !strings.Contains(err.Error(), formats.Names(output.Options{})) {
		t.Errorf("got %v", err)
	}
}

// A template is given as with kubectl get: behind the format, beside it, or in a file.
func TestTemplates(t *testing.T) {
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "template")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	path, goPath, columns, empty := file("{.kind}"), file("{{.kind}}"), file("KIND\n.object.kind\n"), file("")
	for _, c := range []struct {
		format, template, want, fails string
	}{
		{format: "jsonpath={.kind}", want: "PreviewReport"},
		{format: "jsonpath", template: "{.kind}", want: "PreviewReport"},
		{format: "jsonpath-as-json={.kind}", want: "[\n    \"PreviewReport\"\n]\n"},
		{format: "jsonpath-file=" + path, want: "PreviewReport"},
		{format: "go-template={{.kind}}", want: "PreviewReport"},
		{format: "template={{.kind}}", want: "PreviewReport"},
		{format: "go-template-file", template: goPath, want: "PreviewReport"},
		{format: "templatefile=" + goPath, want: "PreviewReport"},
		{format: "custom-columns=KIND:.object.kind", want: "KIND\n"},
		{format: "custom-columns-file=" + columns, want: "KIND\n"},
		{format: "jsonpath=", fails: "no template given"},
		{format: "go-template", fails: "no template given"},
		{format: "custom-columns", fails: "-o custom-columns=HEADER:PATH"},
		{format: "jsonpath-file=" + empty, fails: "no template in the file"},
		{format: "go-template-file=" + filepath.Join(t.TempDir(), "none"), fails: "reading the template"},
		{format: "jsonpath={.kind}", template: "{.kind}", fails: "leave one of them out"},
		{format: "json", template: "{.kind}", fails: "a template works with -o jsonpath="},
		{format: "json=x", fails: "unknown output format"},
		{format: "junit", fails: "use --report junit=FILE"},
	} {
		var out bytes.Buffer
		p, err := formats.New(c.format, output.Options{Out: &out, Template: c.template})
		if err == nil {
			err = outputtest.End(p, evaluation.Summary{})
		}
		switch {
		case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
			t.Errorf("-o %s --template %q: got %v, want %q", c.format, c.template, err, c.fails)
		case c.fails == "" && (err != nil || out.String() != c.want):
			t.Errorf("-o %s --template %q: got %q, %v; want %q", c.format, c.template, &out, err, c.want)
		}
	}
}

// Formats that list objects alone have no place for reasons.
func TestExplains(t *testing.T) {
	for format, want := range map[string]bool{"diff": true, "wide": true, "jsonpath={.a}": true, "table": false, "name": false} {
		if got := formats.Explains(format); got != want {
			t.Errorf("%s: got %v", format, got)
		}
	}
	if list := formats.ExplainNames(); strings.Contains(list, "table") || !strings.Contains(list, "wide") {
		t.Errorf("got %s", list)
	}
}

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
	s := report.StoreSummary{Objects: 4, Rules: []report.StoreCount{{Policy: "p", Rule: "r", Fail: 1, Error: 2, Skip: 3, Pass: 4}, {Policy: "p.yaml:1", Error: 1}}}
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
