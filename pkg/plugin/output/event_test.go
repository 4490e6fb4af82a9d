package output_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

// A report that is closed without the summary would show an empty run.
func TestTeeHandsTheSummaryToAll(t *testing.T) {
	broken, sound := &counter{err: errors.New("no space left")}, &counter{}
	tee := output.Tee(broken, sound)
	if err := tee.Print(output.Evaluated{Change: &engine.Change{}}); !errors.Is(err, broken.err) || sound.events != 0 {
		t.Errorf("a change: %v, and %d events behind the failure", err, sound.events)
	}
	if err := tee.Print(output.Summary{}); !errors.Is(err, broken.err) || sound.events != 1 {
		t.Errorf("the summary: %v, and %d events behind the failure", err, sound.events)
	}
}

type counter struct {
	events int
	err    error
}

func (c *counter) Print(output.Event) error { c.events++; return c.err }

func (c *counter) Close() error { return c.err }

func TestCollectorHint(t *testing.T) {
	unchanged, failed := engine.Change{Before: &unstructured.Unstructured{}}, engine.Change{Steps: []engine.Step{{Outcome: engine.Failed}}}
	ready := changed(engine.Step{Outcome: engine.Changed})
	created := changed(engine.Step{Outcome: engine.Changed, AsCreated: true})
	both := changed(engine.Step{Outcome: engine.Changed, AsCreated: true}, engine.Step{Outcome: engine.Changed})
	denied := changed(engine.Step{Outcome: engine.Changed}, engine.Step{Outcome: engine.Denied})
	managed, refused := changed(engine.Step{Outcome: engine.Changed}), changed(engine.Step{Outcome: engine.Changed})
	managed.Impacts = []engine.Impact{{Code: engine.ImpactRollout}, {Code: engine.ImpactManaged}}
	refused.Impacts = []engine.Impact{{Code: engine.ImpactManaged}, {Code: engine.ImpactImmutable}}
	advisor := output.HintCollector{Apply: "apply", Explain: "explain", ExplainOne: "explain TYPE/NAME"}
	creates, broken, spent := advisor, advisor, output.HintCollector{}
	creates.Creates, broken.Blocked = true, "1 error in policies"
	sources, owned := advisor, managed
	sources.Fix = "fix"
	owned.Before = &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"ownerReferences": []any{map[string]any{"kind": "ReplicaSet", "controller": true}}}}}
	narrowed := advisor
	narrowed.Namespace = "shop"
	for name, c := range map[string]struct {
		output.HintCollector
		changes []engine.Change
		want    output.Hint
	}{
		"no object":                      {advisor, nil, output.Hint{Why: "explain TYPE/NAME"}},
		"no object in one namespace":     {narrowed, nil, output.Hint{Note: "Only objects in namespace shop were chosen; -A chooses all.", Why: "explain TYPE/NAME"}},
		"an object in one namespace":     {narrowed, []engine.Change{unchanged}, output.Hint{Why: "explain"}},
		"no change":                      {advisor, []engine.Change{unchanged}, output.Hint{Why: "explain"}},
		"nothing but failures":           {advisor, []engine.Change{failed, unchanged}, output.Hint{Note: "The changes are not known for 1 object: rules failed, were denied or are not supported.", Why: "explain"}},
		"a change":                       {advisor, []engine.Change{unchanged, failed, ready}, output.Hint{Next: "apply"}},
		"a change beside others":         {advisor, []engine.Change{created, managed, denied, ready}, output.Hint{Next: "apply"}},
		"a change beside a refused one":  {advisor, []engine.Change{refused, denied, ready}, output.Hint{Note: "The server would refuse 1 object: nothing is written unless such objects are skipped.", Next: "apply --skip-rejected"}},
		"rules for new objects":          {advisor, []engine.Change{created, refused}, output.Hint{Note: "All of these changes come from rules that run only when an object is created.", Next: "apply --skip-rejected --operation=CREATE"}},
		"such rules, that was typed":     {creates, []engine.Change{created}, output.Hint{Next: "apply"}},
		"such rules, and one for others": {advisor, []engine.Change{both}, output.Hint{Next: "apply"}},
		"managed objects with a source":  {sources, []engine.Change{managed}, output.Hint{Note: "All of these objects are managed by a tool or controller that may revert the changes: make them in the manifests that the objects come from.", Next: "fix"}},
		"objects of a controller":        {sources, []engine.Change{owned}, output.Hint{Note: "All of these objects are managed by a tool or controller that may revert the changes.", Next: "apply --include-managed"}},
		"managed objects":                {advisor, []engine.Change{managed, refused}, output.Hint{Note: "All of these objects are managed by a tool or controller that may revert the changes.", Next: "apply --skip-rejected --include-managed"}},
		"refused changes":                {advisor, []engine.Change{refused}, output.Hint{Note: "The server would refuse all of these changes: there is nothing to apply."}},
		"denied objects":                 {advisor, []engine.Change{denied}, output.Hint{Note: "Admission would refuse all of these objects: there is nothing to apply."}},
		"a broken policy":                {broken, []engine.Change{ready}, output.Hint{Note: "Nothing can be applied: 1 error in policies."}},
		"standard input is spent":        {spent, []engine.Change{managed}, output.Hint{}},
	} {
		t.Run(name, func(t *testing.T) {
			summary := evaluation.NewSummary(nil)
			for i := range c.changes {
				summary.Add(&c.changes[i])
				c.Add(&c.changes[i])
			}
			if diff := cmp.Diff(c.want, c.Hint(*summary)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func changed(steps ...engine.Step) engine.Change {
	return engine.Change{Fields: make([]engine.FieldChange, 1), Steps: steps}
}
