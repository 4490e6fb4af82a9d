package report_test

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
)

// Where one side denies the object, each rule of it says so and why, and no verdict has a rule without a message.
func TestDescribeComparedSaysWhyOnEachRule(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a"}}}
	denies, changes := engine.RuleRef{Dialect: "kyverno", Policy: "denies"}, engine.RuleRef{Dialect: "kyverno", Policy: "changes"}
	side := func(s engine.Step) *engine.Change {
		return &engine.Change{Subject: engine.KeyOf(object), Before: object, After: object, Steps: []engine.Step{s}}
	}
	for _, v := range []compare.Verdict{compare.OnlyOldDenies, compare.NotComparable} {
		outcome := engine.Denied
		if v == compare.NotComparable {
			outcome = engine.Failed
		}
		r := &compare.Result{Subject: engine.KeyOf(object), Verdict: v, Everywhere: true, Changes: [2]*engine.Change{
			compare.Old: side(engine.Step{Rule: denies, Outcome: outcome, Err: errors.New("the registry is not ours")}),
			compare.New: side(engine.Step{Rule: changes, Outcome: engine.Unchanged}),
		}}
		described, err := report.DescribeCompared(output.Compared{Result: r, Difference: r.Difference()})
		if err != nil {
			t.Fatal(err)
		}
		if len(described.Findings) != 2 {
			t.Errorf("%s: %d findings", v, len(described.Findings))
		}
		for _, f := range described.Findings {
			if f.Verdict == report.Pass || !strings.Contains(f.Message, string(v)+": old: ") || !strings.Contains(f.Message, "the registry is not ours") {
				t.Errorf("%s: %s: %s: %q", v, f.Name, f.Verdict, f.Message)
			}
		}
	}
}
