package mutatingpolicy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
)

// exception is a PolicyException, compiled for a rule.
type exception struct {
	*Exception
	scope      *cel.Scope
	conditions []condition
}

// excepted finds what the exceptions allow on the object of an evaluation. The
// error is a *SkippedError where one of them holds the rule back altogether. As
// in Kyverno, nothing that is wrong with another exception takes that back.
func (e *execution) excepted() (images, values []string, err error) {
	var full []string
	passes := false
	for _, x := range e.rule.exceptions {
		if x.Expired(e.world.Now) {
			continue
		}
		unmet, err := e.holds(x.scope.Evaluate(e.ctx, e.input(), cel.MatchBudget()), x.conditions)
		switch {
		case err != nil && len(full) > 0:
		case err != nil:
			return nil, nil, fmt.Errorf("PolicyException %s: %w", x.Name, err)
		case unmet != nil:
		case x.Partial():
			images, values = append(images, x.Images...), append(values, x.Values...)
		default:
			full = append(full, x.Name)
			passes = passes || x.Passes
		}
	}
	if len(full) == 0 {
		return images, values, nil
	}
	verb := "skipped"
	if passes {
		verb = "passed"
	}
	slices.Sort(full)
	return nil, nil, &SkippedError{Reason: fmt.Sprintf("rule is %s due to policy exception: %s", verb, strings.Join(full, ", "))}
}

// SkippedError is why a rule that matched was held back, in Kyverno's words.
type SkippedError struct{ Reason string }

// Error is the reason.
func (e *SkippedError) Error() string { return e.Reason }

func isSkipped(err error) bool {
	var skipped *SkippedError
	var unmet *cel.ConditionError
	return errors.As(err, &skipped) || errors.As(err, &unmet)
}
