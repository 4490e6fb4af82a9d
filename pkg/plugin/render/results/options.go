package results

import (
	"io"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render/color"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render/document"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/secret"
)

// Options say how to print. Only Out is needed.
type Options struct {
	Out   io.Writer
	Color color.Painter
	// Masker hides the values of Secrets; a nil one shows them.
	Masker *secret.Masker
	// DryRun is "client" or "server" where the results are those of a dry run.
	DryRun string
	// Context says in the report where it was written.
	Context document.Context
}

func (o *Options) learn(r *apply.Result) {
	o.Masker.Learn(r.Before)
	o.Masker.Learn(r.After)
}
