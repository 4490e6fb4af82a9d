package structured

import (
	"io"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// Options say how to print. Only Out is needed.
type Options struct {
	Out io.Writer
	// Masker hides the values of Secrets; a nil one shows them.
	Masker *redact.Masker
	// Explain tells of every object and rule what came of it, and why.
	Explain bool
	// Context says in the report what was evaluated.
	Context Context
}
