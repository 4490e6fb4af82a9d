package apply

import (
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Rules say that an object is as they want it only if they match it and leave it as it is.
func TestTaskIsMet(t *testing.T) {
	one, other := engine.RuleRef{Policy: "p", Rule: "one"}, engine.RuleRef{Policy: "p", Rule: "other"}
	for name, c := range map[string]struct {
		task  Task
		steps []engine.Step
		want  bool
	}{
		"unchanged":              {Task{Rules: []engine.RuleRef{one}}, []engine.Step{{Rule: one, Outcome: engine.Unchanged}}, true},
		"skipped":                {Task{Rules: []engine.RuleRef{one}}, []engine.Step{{Rule: one, Outcome: engine.Skipped}}, true},
		"not matched":            {Task{Rules: []engine.RuleRef{one}}, []engine.Step{{Rule: one, Outcome: engine.NotMatched}}, false},
		"failed":                 {Task{Rules: []engine.RuleRef{one}}, []engine.Step{{Rule: one, Outcome: engine.Failed}}, false},
		"not met any more":       {Task{Rules: []engine.RuleRef{one}}, nil, false},
		"one of two not matched": {Task{Rules: []engine.RuleRef{one, other}}, []engine.Step{{Rule: one, Outcome: engine.Unchanged}}, false},
		"without rules":          {Task{}, nil, true},
	} {
		if got := c.task.isMet(&engine.Change{Steps: c.steps}); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
	undo := Task{}
	if undo.isMet(&engine.Change{Fields: []engine.FieldChange{{}}}) {
		t.Error("an object that is still to be changed is met")
	}
}
