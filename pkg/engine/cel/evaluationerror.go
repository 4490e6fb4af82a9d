package cel

import (
	"fmt"
	"strings"
)

// EvaluationError is an expression that fails on an object.
type EvaluationError struct {
	Expression string
	Err        error
}

// Error names the expression, shortened to one line.
func (e *EvaluationError) Error() string {
	return fmt.Sprintf("expression %q resulted in error: %v", shorten(e.Expression), e.Err)
}

// Unwrap gives the reason.
func (e *EvaluationError) Unwrap() error { return e.Err }

// maxQuoted is how much of an expression an error quotes.
const maxQuoted = 120

func shorten(expression string) string {
	text := []rune(strings.Join(strings.Fields(expression), " "))
	if len(text) > maxQuoted {
		return string(text[:maxQuoted]) + "…"
	}
	return string(text)
}

// LimitError is a bound on the cost of an evaluation that was reached.
type LimitError struct {
	Expression string
	Limit      string // "10000000 units of CEL cost for all expressions of a mutation"
}

// Error names the bound.
func (e *LimitError) Error() string {
	return fmt.Sprintf("expression %q was stopped: it reached the limit of %s", shorten(e.Expression), e.Limit)
}

// UnsupportedError is something that an evaluation needs and does not have.
type UnsupportedError struct{ Reason string }

// Error is the reason.
func (e *UnsupportedError) Error() string { return e.Reason }
