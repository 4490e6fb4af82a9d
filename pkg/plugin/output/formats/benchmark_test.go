package formats_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/internal/outputtest"
)

// podChange is a change to a Pod of a common size; value makes it different from others.
func podChange(name, value string) engine.Change {
	pod := func(image string, labels map[string]any) map[string]any {
		var containers []any
		for i := range 3 {
			containers = append(containers, map[string]any{
				"name": fmt.Sprint("c", i), "image": image, "args": []any{"a", "b"},
				"env":       []any{map[string]any{"name": "A", "value": "x"}, map[string]any{"name": "B", "value": "y"}},
				"resources": map[string]any{"limits": map[string]any{"cpu": "500m", "memory": "1Gi"}},
			})
		}
		return map[string]any{
			"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"name": name, "namespace": "shop", "labels": labels},
			"spec":     map[string]any{"containers": containers},
		}
	}
	rule := engine.RuleRef{Dialect: "kyverno", Policy: "p", Rule: "r"}
	before, after := pod("web:1", map[string]any{"a": "b"}), pod("web:2", map[string]any{"a": "b", "c": value})
	c := engine.Change{Before: object(before), After: object(after), Steps: []engine.Step{{Rule: rule, Outcome: engine.Changed}}}
	c.Subject = engine.KeyOf(c.After)
	for _, f := range diff.Compare(before, after, diff.Type{}) {
		f.Rule = rule
		c.Fields = append(c.Fields, f)
	}
	return c
}

// BenchmarkDiff prints changes that are all alike, or all different, as one group or each on its own.
func BenchmarkDiff(b *testing.B) {
	for name, value := range map[string]func(int) string{
		"alike":     func(int) string { return "d" },
		"different": func(i int) string { return fmt.Sprint("d", i) },
	} {
		var changes []engine.Change
		for i := range 1000 {
			changes = append(changes, podChange(fmt.Sprint("web-", i), value(i)))
		}
		for _, by := range []output.GroupBy{output.ByPatch, output.ByObject} {
			b.Run(name+"/"+string(by), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					p, err := formats.NewPreview(formats.Diff, output.Options{Out: io.Discard, GroupBy: by, ShowSecrets: true})
					if err != nil {
						b.Fatal(err)
					}
					for i := range changes {
						if err := p.Print(output.Evaluated{Change: &changes[i]}); err != nil {
							b.Fatal(err)
						}
					}
					if err := outputtest.End(p, evaluation.Summary{}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
