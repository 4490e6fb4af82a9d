package engine

import "errors"

// Outcome is the result of one rule on one object.
type Outcome string

// The outcomes, from the most to the least interesting.
const (
	Changed     Outcome = "changed"
	Failed      Outcome = "failed"      // the rule could not be evaluated on this object
	Denied      Outcome = "denied"      // admission would refuse the object
	Unsupported Outcome = "unsupported" // needs something this program cannot or may not do; Err says what
	Skipped     Outcome = "skipped"     // matched, then a precondition or exception held it back
	Unchanged   Outcome = "unchanged"   // ran, and the object is as it was; Err says why if need be
	NotMatched  Outcome = "not-matched"
	// AsCreated is, in a RuleSummary, a rule that would change the object if it were created, and not, or not
	// so, if it were updated. No step has it.
	AsCreated Outcome = "as-created"
)

// Incomplete reports whether the effect of the policy remains unknown.
func (o Outcome) Incomplete() bool { return o == Failed || o == Denied || o == Unsupported }

// OutcomeOf returns the outcome of a matching rule that ended with an error: Skipped, Unsupported or else
// Failed.
func OutcomeOf(err error) Outcome {
	var skipped *SkippedError
	var ignored *IgnoredError
	var unsupported *UnsupportedError
	var unanswered *UnansweredError
	var noNamespace *NamespaceError
	var unknownUser *UnknownUserError
	switch {
	case errors.As(err, &skipped), errors.As(err, &ignored):
		return Skipped
	case errors.As(err, &unsupported), errors.As(err, &unanswered), errors.As(err, &noNamespace),
		errors.As(err, &unknownUser):
		return Unsupported
	}
	return Failed
}

// SkippedError is the reason why a matching rule is skipped.
type SkippedError struct {
	Reason string // in the words of the rule's engine
	Err    error  // the unmet condition; may be nil
}

// Error returns the reason and the unmet condition.
func (e *SkippedError) Error() string {
	if e.Err == nil {
		return e.Reason
	}
	return e.Reason + ": " + e.Err.Error()
}

// Unwrap returns the unmet condition.
func (e *SkippedError) Unwrap() error { return e.Err }

// Brief returns the reason without details of the object, so that objects can share it.
func (e *SkippedError) Brief() string {
	var inner interface{ Brief() string }
	if errors.As(e.Err, &inner) {
		return e.Reason + ": " + inner.Brief()
	}
	return e.Reason
}

// UnsupportedError is something that a rule needs and that this program cannot, or may not, do, although the
// rule's engine could.
type UnsupportedError struct {
	Field string // in the rule, such as "context[0].imageRegistry"; empty if a wrapping error names it
	Err   error
}

// Error names the field and the reason.
func (e *UnsupportedError) Error() string {
	if e.Field == "" {
		return e.Err.Error()
	}
	return e.Field + ": " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *UnsupportedError) Unwrap() error { return e.Err }
