package kyverno

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// annotating is a case of testdata/parts/annotate.txtar: what rule r of policy p made of a
// target, and the target with the rule's line.
type annotating struct {
	Live        map[string]any // before the first rule; the same as before where it is left out
	Before      map[string]any
	After       map[string]any
	Subresource string
	Want        map[string]any // nil where the step stays as it is
	Warning     engine.Warning
}

func TestAnnotate(t *testing.T) {
	conformance.EachCase(t, "testdata/parts/annotate.txtar", func(t *testing.T, c *annotating) { c.check(t) })
}

func (c *annotating) check(t *testing.T) {
	if c.Live == nil {
		c.Live = c.Before
	}
	live, before, after := object(c.Live), object(c.Before), object(c.After)
	untouched := []*unstructured.Unstructured{live.DeepCopy(), before.DeepCopy(), after.DeepCopy()}
	subject := engine.Target{Key: engine.KeyOf(before), Object: before, OldObject: live}
	subject.Key.Subresource = c.Subresource
	step := engine.Step{Rule: engine.RuleRef{Policy: "p", Rule: "r"}, Outcome: engine.Changed, After: after}
	got := step
	annotateAppliedPatches(&got, &subject, diff.Type{EmptyIsAbsent: true})
	if c.Want == nil {
		c.Want = c.After
	}
	if diff := cmp.Diff(c.Want, got.After.Object); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	var warnings []engine.Warning
	if c.Warning != "" {
		warnings = []engine.Warning{c.Warning}
	}
	if diff := cmp.Diff(warnings, got.Warnings); diff != "" {
		t.Errorf("warnings: -want +got\n%s", diff)
	}
	if diff := cmp.Diff(untouched, []*unstructured.Unstructured{live, before, after}); diff != "" {
		t.Errorf("what was handed in was modified:\n%s", diff)
	}
}

func object(o map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: o}
}
