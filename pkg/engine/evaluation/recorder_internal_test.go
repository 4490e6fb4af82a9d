package evaluation

import (
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// What thousands of rules did to one object is kept once: the list of the program is that of the recorder, unless most of it is
// of rules that did not match.
func TestListsOfStepsAreTakenOver(t *testing.T) {
	outcomes := func(n int, o engine.Outcome) []engine.Step {
		steps := make([]engine.Step, n)
		for i := range steps {
			steps[i] = engine.Step{Rule: engine.RuleRef{Policy: string(o)}, Outcome: o}
		}
		return steps
	}
	all := append(outcomes(1, engine.NotMatched), outcomes(3, engine.Skipped)...)
	r := &recorder{room: 100}
	engine.HandOver(r, all)
	if len(r.steps) != 3 || &r.steps[0] != &all[0] || r.steps[0].Outcome != engine.Skipped || !r.notMatched.Has(engine.RuleRef{Policy: string(engine.NotMatched)}) {
		t.Errorf("%d steps of the list were taken: %v", len(r.steps), r.steps)
	}
	engine.HandOver(r, outcomes(2, engine.Failed))
	if len(r.steps) != 5 || r.steps[2].Outcome != engine.Skipped || r.steps[4].Outcome != engine.Failed {
		t.Errorf("then two more: %v", r.steps)
	}
	r = &recorder{}
	engine.HandOver(r, append(outcomes(3, engine.NotMatched), outcomes(1, engine.Skipped)...))
	if len(r.steps) != 1 || cap(r.steps) > 1 {
		t.Errorf("of a list of four, room for %d steps is kept for %d", cap(r.steps), len(r.steps))
	}
}
