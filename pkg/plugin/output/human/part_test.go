package human_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/human"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/internal/outputtest"
)

// A warning stands under the policies that write the fields it is about; one about
// a field of which nothing is left under all that change the object; and one of an
// object on which nothing ran is shown as well.
func TestSummaryByPolicyWarnings(t *testing.T) {
	spec, status := fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("spec", "template", "x")
	change := func(impact engine.Impact) engine.Change {
		c := engine.Change{
			Before: &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"a": "1"}, "metadata": map[string]any{"name": "web"}}},
			After:  &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"a": "2"}, "metadata": map[string]any{"name": "web", "labels": map[string]any{"b": "c"}}}},
		}
		c.Subject.Kind, c.Subject.Name = "Pod", "web"
		for _, policy := range []string{"labels", "specs", "idle"} {
			rule := engine.RuleRef{Dialect: "kyverno", Policy: policy, Rule: "r"}
			c.Steps = append(c.Steps, engine.Step{Rule: rule, Outcome: engine.Changed})
		}
		for i, f := range diff.Compare(c.Before.Object, c.After.Object, diff.Type{}) {
			f.Rule = c.Steps[i].Rule
			c.Fields = append(c.Fields, f)
		}
		impact.Code, impact.Text = "managed", "noted"
		c.Impacts = []engine.Impact{impact}
		return c
	}
	untouched := change(engine.Impact{})
	untouched.Steps, untouched.Fields = nil, nil
	for _, c := range []struct {
		why    string
		change engine.Change
		want   []string
	}{
		{"fields that one policy writes", change(engine.Impact{Fields: []fieldpath.Path{spec}}), []string{"kyverno specs"}},
		{"fields that are unchanged in the end", change(engine.Impact{Fields: []fieldpath.Path{status}}), []string{"kyverno labels", "kyverno specs"}},
		{"the object as a whole", change(engine.Impact{}), []string{"kyverno labels", "kyverno specs"}},
		{"an object on which nothing ran", untouched, []string{"no policy"}},
	} {
		var out bytes.Buffer
		p := outputtest.Printer(human.NewSummary(output.Options{Out: &out, GroupBy: output.ByPolicy}))
		if err := errors.Join(p.Print(output.Evaluated{Change: &c.change}), output.Flush(p)); err != nil {
			t.Fatal(err)
		}
		var got []string
		for section := range strings.SplitSeq(out.String(), "== ") {
			if strings.Contains(section, "noted") {
				title, _, _ := strings.Cut(section, "\n")
				got = append(got, title)
			}
		}
		if strings.Join(got, ",") != strings.Join(c.want, ",") {
			t.Errorf("%s: shown under %q, want %q\n%s", c.why, got, c.want, &out)
		}
	}
}
