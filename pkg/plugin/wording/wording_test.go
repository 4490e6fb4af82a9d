package wording_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

func TestNames(t *testing.T) {
	rule := engine.RuleRef{Dialect: "kyverno", Policy: "team", Rule: "add", Via: "b", Origin: "a.yaml:1"}
	deployment := engine.ObjectKey{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: "shop", Name: "web"}
	pod := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "Pod"}, Name: "web"}
	for got, want := range map[string]string{
		wording.Rule(rule):               `kyverno team/add via b`,
		wording.Policy(rule):             "kyverno team",
		wording.ResourceName(deployment): "deployment.apps/web",
		wording.ResourceName(pod):        "pod/web",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestCountsSayWhatWentOtherwise(t *testing.T) {
	summary := func(objects, changed int) evaluation.Summary {
		return evaluation.Summary{Objects: objects, Changed: changed, Fields: 2 * changed}
	}
	bad := summary(3, 1)
	bad.Incomplete, bad.Warnings = 2, 1
	bad.Rules = []evaluation.RuleSummary{{Outcomes: map[engine.Outcome]int{engine.Failed: 2, engine.Changed: 1}}}
	for _, c := range []struct {
		summary evaluation.Summary
		want    string
	}{
		{summary(0, 0), "No objects evaluated."},
		{evaluation.Summary{Incomplete: 1}, "No objects evaluated. 1 object incomplete."},
		{summary(1, 0), "1 object evaluated: 0 would change, 1 would not."},
		{summary(2, 2), "2 objects evaluated: 2 would change (4 fields), 0 would not."},
		{bad, "3 objects evaluated: 1 would change (2 fields), 2 would not. 2 objects incomplete, 2 rule results failed, 1 warning."},
	} {
		if got := wording.Counts(c.summary); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestRestarts(t *testing.T) {
	if got := wording.Restarts(evaluation.Restarts{Workloads: 1, Pods: 3}); got != "3 Pods of 1 workload would restart." {
		t.Errorf("got %q", got)
	}
	if got := wording.Restarts(evaluation.Restarts{}); got != "" {
		t.Errorf("got %q", got)
	}
}
