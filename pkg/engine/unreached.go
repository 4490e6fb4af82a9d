package engine

import (
	"fmt"
	"strings"
)

// NotTriggeredError is the reason why a rule that changes other objects than those it
// matches changes none at all: no object that the run could read triggers it.
type NotTriggeredError struct {
	Wants []Selection // what triggers it, or a superset
	Near  int         // objects among them that were seen
	// Nearest is the step of the object that came nearest; nil where there is none.
	Nearest *Step
}

// Error names what would trigger the rule, and the object that came nearest.
func (e *NotTriggeredError) Error() string {
	const text = "no object triggers the rule"
	if e.Nearest != nil {
		return text + fmt.Sprintf(", of %d that could: %s", e.Near, asTrigger(e.Nearest))
	}
	return text + ": its triggers are " + Few(e.Wants) + ", and the run saw none"
}

// NotTargetError is the reason why a rule that was triggered does not change an
// object: no trigger names it as its target.
type NotTargetError struct {
	Triggers int // how many objects triggered the rule
	// Trigger is the one that came nearest to naming the object, Target what it
	// names, and Mismatches how the object differs from that.
	Trigger    ObjectKey
	Target     Selection
	Mismatches []Mismatch
	// Broken is the step of another trigger whose targets could not be evaluated; nil
	// where there is none.
	Broken *Step
}

// Error says what the nearest trigger names instead.
func (e *NotTargetError) Error() string {
	var b strings.Builder
	if e.Triggers == 1 {
		b.WriteString("its one trigger does not name it as a target")
	} else {
		fmt.Fprintf(&b, "none of %d triggers names it as a target", e.Triggers)
	}
	fmt.Fprintf(&b, ": %s names %s", e.Trigger, e.Target)
	if len(e.Mismatches) > 0 {
		parts := make([]string, len(e.Mismatches))
		for i, m := range e.Mismatches {
			parts[i] = m.Error()
		}
		fmt.Fprintf(&b, " (%s)", strings.Join(parts, "; "))
	}
	if e.Broken != nil {
		fmt.Fprintf(&b, "; what another one names is not known: %s", asTrigger(e.Broken))
	}
	return b.String()
}

// asTrigger describes why an object did not trigger a rule.
func asTrigger(s *Step) string {
	outcome := string(s.Outcome)
	if s.Outcome == NotMatched {
		outcome = "does not match"
	}
	if s.Err == nil {
		return fmt.Sprintf("%s: %s", s.Trigger, outcome)
	}
	return fmt.Sprintf("%s: %s: %v", s.Trigger, outcome, s.Err)
}

// Unreached reports whether a step is only there because the run keeps reasons.
func (s *Step) Unreached() bool {
	switch s.Err.(type) { //nolint:errorlint // as it was made here
	case *NotTriggeredError, *NotTargetError:
		return true
	}
	return false
}
