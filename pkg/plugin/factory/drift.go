package factory

import (
	"fmt"
	"io"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// DriftPrinter shows the diff that was planned and the one that would be made now.
// It goes to errOut: the results have their place on standard output, and
// one line of them says who changed what.
func DriftPrinter(options output.Options, errOut io.Writer) func(*plan.Drift) error {
	options.Out, options.Color, options.Query, options.Hint = errOut, false, "", nil
	options.GroupBy = output.ByObject
	show := func(title string, c *engine.Change) error {
		if _, err := fmt.Fprintf(errOut, "%s\n", title); err != nil {
			return err
		}
		if !c.Changed() {
			_, err := fmt.Fprintln(errOut, "    nothing to change")
			return err
		}
		printer, err := formats.NewPreview(formats.Diff, options)
		if err != nil {
			return err
		}
		if err := printer.Print(output.Evaluated{Change: c}); err != nil {
			return err
		}
		return output.Flush(printer)
	}
	return func(d *plan.Drift) error {
		if err := show(fmt.Sprintf("%s: this was planned:", d.Object), &d.Planned); err != nil {
			return err
		}
		return show(fmt.Sprintf("%s: this would be done now:", d.Object), &d.Now)
	}
}
