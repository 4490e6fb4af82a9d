package variables

import (
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// maxQuoted is how much of an expression, and of a path, an error quotes, in bytes.
const maxQuoted = 1000

// ResolveError is a variable of a document that has no value. Its words are Kyverno's; errors.As finds a *jmespath.NotFoundError in it where
// a key is missing.
type ResolveError struct {
	Expression string
	Path       string // such as "/spec/template/metadata/labels/team"
	Err        error
}

// Error names the variable and its place, each cut short.
func (e *ResolveError) Error() string {
	return fmt.Sprintf("failed to resolve %s at path %s: %v", engine.Shorten(e.Expression, maxQuoted), engine.Shorten(e.Path, maxQuoted), e.Err)
}

// Unwrap returns the reason.
func (e *ResolveError) Unwrap() error { return e.Err }

// EntryError is a context entry that could not be loaded.
type EntryError struct {
	Name string
	Err  error
}

// Error gives the entry and the reason.
func (e *EntryError) Error() string {
	return fmt.Sprintf("failed to load context entry %s: %v", e.Name, e.Err)
}

// Unwrap returns the reason.
func (e *EntryError) Unwrap() error { return e.Err }
