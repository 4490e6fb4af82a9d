package formats_test

import (
	"bytes"
	"errors"
	"flag"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/internal/outputtest"
)

var update = flag.Bool("update", false, "rewrite the expected output")

// given is what a case is made of: changes whose fields belong to the rule that
// says so, or else to the last one that changed the object.
type given struct {
	ShowSecrets, Explain bool
	Query, Next          string
	GroupBy              output.GroupBy
	Expand               bool
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
			c.Steps = append(c.Steps, step)
		}
		for _, f := range diff.Compare(in.Before, c.After.Object, diff.Type{EmptyIsAbsent: g.BuiltIn}) {
			rule, ok := writers[engine.PathString(f.Path)]
			if !ok {
				rule = last
			}
			f.Rule = rule
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
	o := output.Options{Out: &out, ShowSecrets: g.ShowSecrets, Explain: g.Explain, Query: g.Query, Hint: next(g.Next), GroupBy: g.GroupBy, Expand: g.Expand, ContextLines: g.ContextLines}
	p, err := formats.NewPreview(format, o)
	if err != nil {
		t.Fatal(err)
	}
	var summary evaluation.Summary
	for _, c := range g.changes() {
		summary.Add(&c)
		if err := p.Print(output.Evaluated{Change: &c}); err != nil {
			t.Fatal(err)
		}
	}
	if err := outputtest.End(p, summary); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestUnknownFormat(t *testing.T) {
	_, err := formats.NewPreview("xml", output.Options{})
	var unknown *formats.UnknownFormatError
	if !errors.As(err, &unknown) || !strings.Contains(err.Error(), formats.PreviewNames()) {
		t.Errorf("got %v", err)
	}
}
