package output_test

import (
	"errors"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

func TestListed(t *testing.T) {
	step := func(s engine.Step) *engine.Change { return &engine.Change{Steps: []engine.Step{s}} }
	for _, c := range []struct {
		why     string
		change  *engine.Change
		reasons bool
		want    bool
	}{
		{"nothing", step(engine.Step{Outcome: engine.Unchanged}), false, false},
		{"nothing, but all reasons are asked for", step(engine.Step{Outcome: engine.Unchanged}), true, true},
		{"a difference", &engine.Change{Fields: make([]engine.FieldChange, 1)}, false, true},
		{"a change that was set back", step(engine.Step{Outcome: engine.Changed}), false, true},
		{"a failure", step(engine.Step{Outcome: engine.Failed, Err: errors.New("no")}), false, true},
		{"a skipped rule", step(engine.Step{Outcome: engine.Skipped}), false, false},
		{"a warning", step(engine.Step{Outcome: engine.Unchanged, Warnings: []engine.Warning{"w"}}), false, true},
		{"an impact", &engine.Change{Impacts: make([]engine.Impact, 1)}, false, true},
	} {
		if got := output.Listed(c.change, c.reasons); got != c.want {
			t.Errorf("%s: listed %v", c.why, got)
		}
	}
}
