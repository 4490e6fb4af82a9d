package human

import (
	"io"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/hints"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render/color"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render/grouping"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/secret"
)

// Options say how to print. Only Out is needed.
type Options struct {
	Out   io.Writer
	Color color.Painter
	// Masker hides the values of Secrets; a nil one shows them.
	Masker *secret.Masker
	// Explain tells of every object and rule what came of it, and why.
	Explain bool
	// GroupBy says which objects are shown as one, and Expand that the names of all
	// of them are listed.
	GroupBy grouping.By
	Expand  bool
	// ContextLines are those of objectdiff.Differ.
	ContextLines int
	// Namespace is the one that the user chose, and "" where that are several. Rules that
	// change other objects than those that they match may reach out of it, which is told.
	Namespace string
	// Advise says what to type next; nil for nothing.
	Advise func(engine.Summary) hints.Advice
}
