package human_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/internal/outputtest"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/human"
)

// failing is an object on which a rule fails, with its name in the reason.
func failing(name string) engine.Change {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "shop"},
	}}
	c := engine.Change{Subject: engine.KeyOf(u), Before: u, After: u}
	c.Steps = []engine.Step{{
		Rule: engine.RuleRef{Policy: "p", Rule: "r"}, Outcome: engine.Failed,
		Err:      fmt.Errorf("configmaps %q not found", name+"-settings, for shop/"+name),
		Warnings: []engine.Warning{engine.Warning("of " + `"` + name + `"`)},
	}}
	return c
}

// A rule that fails on fifty objects for one reason is told once, and counted; again below a page.
func TestFailuresAlike(t *testing.T) {
	for i, format := range []func(output.Options) output.Printer{
		func(o output.Options) output.Printer { return outputtest.Printer(human.NewDiff(o)) },
		func(o output.Options) output.Printer { return outputtest.Printer(human.NewSummary(o)) },
		func(o output.Options) output.Printer { return outputtest.Printer(human.NewMarkdown(o)) },
	} {
		page := 0
		if i == 2 {
			page = 1
		}
		var out bytes.Buffer
		p := format(output.Options{Out: &out})
		var errs []error
		for i := range 50 {
			c := failing(fmt.Sprintf("c%d", i))
			c.Steps[0].Err = fmt.Errorf("GET /api/v1/namespaces/shop/configmaps/c%d: not found", i)
			errs = append(errs, p.Print(outputtest.Evaluated(c)))
		}
		if err := errors.Join(append(errs, outputtest.End(p, evaluation.Summary{}))...); err != nil {
			t.Fatal(err)
		}
		for want, n := range map[string]int{
			"! ConfigMap: 50 objects in shop":                                        1,
			"    shop/c0, shop/c1 and 48 more (--list-all lists them)\n":             1,
			"  ! p/r failed: GET /api/v1/namespaces/.../configmaps/...: not found\n": 1,
			"    warning: of \"...\"\n":                                              1,
			"50  p/r failed: GET /api/v1/namespaces/.../configmaps/...: not found":   page,
			"/c0: not found": 0,
		} {
			text := strings.ReplaceAll(strings.ReplaceAll(out.String(), "- 50: `", "50  "), "`\n", "\n")
			if got := strings.Count(text, want); got != n {
				t.Errorf("%d times %q in\n%s", got, want, &out)
			}
		}
	}
}

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
			f.Writer = &c.Steps[i].Rule
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

// dataChange is a change of the data of a ConfigMap.
func dataChange(namespace string, before, after map[string]any) engine.Change {
	of := func(data map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c", "namespace": namespace}, "data": data,
		}}
	}
	c := engine.Change{Before: of(before), After: of(after)}
	c.Subject = engine.KeyOf(c.After)
	c.Fields = append(c.Fields, diff.Compare(c.Before.Object, c.After.Object, diff.Type{})...)
	return c
}

// A change of many fields makes no row wider than a reader can follow, and values are
// written as they are.
func TestTableWideRow(t *testing.T) {
	many := map[string]any{}
	for i := range 25 {
		many[fmt.Sprintf("%s-%02d", strings.Repeat("long", 20), i)] = strings.Repeat("v", 100)
	}
	var out bytes.Buffer
	p := outputtest.Printer(human.NewWideTable(output.Options{Out: &out}))
	err := errors.Join(
		p.Print(outputtest.Evaluated(dataChange("shop", nil, map[string]any{"url": "http://x?a=1&b=<2>"}))),
		p.Print(outputtest.Evaluated(dataChange("shop", map[string]any{"a": "1"}, map[string]any{"a": "2", "b": "3"}))),
		p.Print(outputtest.Evaluated(dataChange("shop", map[string]any{"x": "1"}, many))),
		outputtest.End(p, evaluation.Summary{}),
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`+data.url="http://x?a=1&b=<2>"`, `data.a: "1" -> "2"; +data.b="3"`, "; and 25 more"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, &out)
		}
	}
	for line := range strings.Lines(out.String()) {
		if len(line) > 220 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}
