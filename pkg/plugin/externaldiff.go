package plugin

import (
	"context"
	"io"
	"os"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render/externaldiff"
)

// externalDiffVariable names a program that shows differences, as for kubectl diff.
const externalDiffVariable = "KUBECTL_EXTERNAL_DIFF"

// externalDiff is that program at work. A nil one has nothing to end.
type externalDiff struct {
	ctx         context.Context // of the command
	command     string
	out, errOut io.Writer
	comparison  *externaldiff.Comparison // nil until there is an object to compare
}

// externalDiff is the program that the user has set, if any.
func (w *wiring) externalDiff(ctx context.Context) *externalDiff {
	command := os.Getenv(externalDiffVariable)
	if command == "" {
		return nil
	}
	return &externalDiff{ctx: ctx, command: command, out: w.stdout, errOut: w.streams.ErrOut}
}

// Add implements render.Comparer.
func (d *externalDiff) Add(name, before, after string) error {
	if d.comparison == nil {
		var err error
		if d.comparison, err = externaldiff.Begin(d.command); err != nil {
			return err
		}
	}
	return d.comparison.Add(name, before, after)
}

// Compare implements render.Comparer.
func (d *externalDiff) Compare() error {
	if d.comparison == nil {
		return nil
	}
	return d.comparison.Run(d.ctx, d.out, d.errOut)
}

// end removes what was written for the program.
func (d *externalDiff) end() error {
	if d == nil || d.comparison == nil {
		return nil
	}
	return d.comparison.End()
}
