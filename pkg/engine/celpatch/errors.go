package celpatch

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
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

// noSchema is the error for a kind whose lists and maps nobody knows how to merge.
func noSchema(gvk schema.GroupVersionKind) error {
	return &UnsupportedError{Reason: fmt.Sprintf("an apply configuration cannot be merged without the schema of %s, and a guess could lose data: "+
		"none is published or built in; for files, give its CustomResourceDefinition with -f or --world", kindText(gvk))}
}

// kindText is a kind as messages name it: "apps/v1 Deployment".
func kindText(gvk schema.GroupVersionKind) string {
	return gvk.GroupVersion().String() + " " + gvk.Kind
}
