package human

import (
	"io"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/hints"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// Options say how to print. Only Out is needed.
type Options struct {
	Out   io.Writer
	Color Painter
	// Masker hides the values of Secrets; a nil one shows them.
	Masker *redact.Masker
	// Explain tells of every object and rule what came of it, and why.
	Explain bool
	// GroupBy says which objects are shown as one, and Expand that the names of all
	// of them are listed.
	GroupBy GroupBy
	Expand  bool
	// ContextLines are those of objectdiff.Differ.
	ContextLines int
	// Namespace is the one that the user chose, and "" where that are several. Rules that
	// change other objects than those that they match may reach out of it, which is told.
	Namespace string
	// Advise says what to type next; nil for nothing.
	Advise func(engine.Summary) hints.Hint
}
