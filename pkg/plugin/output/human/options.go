package human

import (
	"io"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/structured"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// ResultOptions say how to print. Only Out is needed.
type ResultOptions struct {
	Out   io.Writer
	Color Painter
	// Masker hides the values of Secrets; a nil one shows them.
	Masker *redact.Masker
	// DryRun is "client" or "server" where the results are those of a dry run.
	DryRun string
	// Context says in the report where it was written.
	Context structured.Context
}

func (o *ResultOptions) learn(r *apply.Result) {
	o.Masker.Learn(r.Before)
	o.Masker.Learn(r.After)
}
