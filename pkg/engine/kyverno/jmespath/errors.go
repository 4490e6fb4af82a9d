package jmespath

import (
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// maxQuoted bounds the quote of an expression in an error, in bytes.
const maxQuoted = 200

// maxReason bounds the reason in a function's error, which may quote all of its arguments.
const maxReason = 1000

// NotFoundError is a missing key of an object, in Kyverno's words.
type NotFoundError struct{ Key string }

// Error names the key.
func (e *NotFoundError) Error() string { return `Unknown key "` + e.Key + `" in path` }

// SyntaxError is an invalid or unsupported expression.
type SyntaxError struct {
	Expression string
	Reason     string
}

// Error quotes the expression, cut short, and the reason.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JMESPath expression %q: %s", engine.Shorten(e.Expression, maxQuoted), e.Reason)
}

// isNotFound distinguishes a missing key of this expression from one in another evaluation, such as a context
// entry's; the latter is never swallowed.
func isNotFound(err error) bool {
	_, ok := err.(*NotFoundError) //nolint:errorlint // wrapped ones are meant to differ
	return ok
}
