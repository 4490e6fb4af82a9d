package human

import (
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// ResultNames prints the names of the objects that were written, or would be.
type ResultNames struct{ options ResultOptions }

// NewResultNames returns a printer of names.
func NewResultNames(o ResultOptions) *ResultNames { return &ResultNames{o} }

// Print prints the name of an object.
func (p *ResultNames) Print(r apply.Result) error {
	if r.Outcome != apply.Applied && r.Outcome != apply.Planned {
		return nil
	}
	_, err := fmt.Fprintln(p.options.Out, wording.ResourceName(r.Key))
	return err
}

// Close has nothing to add.
func (p *ResultNames) Close() error { return nil }
