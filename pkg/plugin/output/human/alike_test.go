package human_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/human"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/internal/outputtest"
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

// A rule that fails on fifty objects for one reason is told once, and counted.
func TestFailuresAlike(t *testing.T) {
	for _, format := range []func(output.Options) output.Printer{
		func(o output.Options) output.Printer { return outputtest.Printer(human.NewDiff(o)) },
		func(o output.Options) output.Printer { return outputtest.Printer(human.NewSummary(o)) },
		func(o output.Options) output.Printer { return outputtest.Printer(human.NewMarkdown(o)) },
	} {
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
			"! ConfigMap: 50 objects in shop":                                         1,
			"    shop/c0, shop/c1 and 48 more (--expand lists them)\n":                1,
			"  ! p/r failed: GET /api/v1/namespaces/shop/configmaps/...: not found\n": 1,
			"    warning: of \"...\"\n":                                               1,
			"50  p/r failed: GET /api/v1/namespaces/shop/configmaps/...: not found":   1,
			"/c0: not found": 0,
		} {
			text := strings.ReplaceAll(strings.ReplaceAll(out.String(), "- 50: `", "50  "), "`\n", "\n")
			if got := strings.Count(text, want); got != n {
				t.Errorf("%d times %q in\n%s", got, want, &out)
			}
		}
	}
}
