package results

import (
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render/wording"
)

// Names prints the names of the objects that were written, or would be.
type Names struct{ options Options }

// NewNames returns a printer of names.
func NewNames(o Options) *Names { return &Names{o} }

// Print prints the name of an object.
func (p *Names) Print(r apply.Result) error {
	if r.Outcome != apply.Applied && r.Outcome != apply.Planned {
		return nil
	}
	_, err := fmt.Fprintln(p.options.Out, wording.ResourceName(r.Key))
	return err
}

// Close has nothing to add.
func (p *Names) Close() error { return nil }
