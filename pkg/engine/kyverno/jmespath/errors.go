package jmespath

import (
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// maxQuoted is how much of an expression an error quotes, in bytes.
const maxQuoted = 200

// maxReason is how much an error shows of the reason why a function fails, which may quote
// all that the function was given.
const maxReason = 1000

// NotFoundError is a key that an object does not have. Its words are Kyverno's.
type NotFoundError struct{ Key string }

// Error gives the key.
func (e *NotFoundError) Error() string { return `Unknown key "` + e.Key + `" in path` }

// UnsupportedError is a part of a rule that this program cannot, or may not, evaluate, where Kyverno could.
type UnsupportedError struct {
	Field  string // in the rule, such as "context[0].imageRegistry"; empty where the error around it says that
	Reason string
}

// Error names the field and the reason.
func (e *UnsupportedError) Error() string {
	if e.Field == "" {
		return e.Reason
	}
	return e.Field + ": " + e.Reason
}

// SyntaxError is a string that is not an expression that this package evaluates.
type SyntaxError struct {
	Expression string
	Reason     string
}

// Error gives the expression, cut short, and the reason.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JMESPath expression %q: %s", engine.Shorten(e.Expression, maxQuoted), e.Reason)
}

// isNotFound distinguishes a missing key of this very expression from one that another
// evaluation met, such as that of a context entry: the latter is never swallowed.
func isNotFound(err error) bool {
	_, ok := err.(*NotFoundError) //nolint:errorlint // wrapped ones are meant to differ
	return ok
}
