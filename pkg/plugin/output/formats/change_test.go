package formats_test

import (
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
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
