package wire

import (
	"context"
	"io"
	"os"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render/externaldiff"
)

// externalDiffVariable names a program that shows differences, as for kubectl diff.
const externalDiffVariable = "KUBECTL_EXTERNAL_DIFF"

// ExternalDiff is that program at work. A nil one has nothing to end.
type ExternalDiff struct {
	ctx         context.Context // of the command
	command     string
	out, errOut io.Writer
	comparison  *externaldiff.Comparison // nil until there is an object to compare
}

// ExternalDiff is the program that the user has set, if any.
func (w *Wiring) ExternalDiff(ctx context.Context) *ExternalDiff {
	command := os.Getenv(externalDiffVariable)
	if command == "" {
		return nil
	}
	return &ExternalDiff{ctx: ctx, command: command, out: w.stdout, errOut: w.Streams.ErrOut}
}

// Add implements human.Comparer.
func (d *ExternalDiff) Add(name, before, after string) error {
	if d.comparison == nil {
		var err error
		if d.comparison, err = externaldiff.Begin(d.command); err != nil {
			return err
		}
	}
	return d.comparison.Add(name, before, after)
}

// Compare implements human.Comparer.
func (d *ExternalDiff) Compare() error {
	if d.comparison == nil {
		return nil
	}
	return d.comparison.Run(d.ctx, d.out, d.errOut)
}

// End removes what was written for the program.
func (d *ExternalDiff) End() error {
	if d == nil || d.comparison == nil {
		return nil
	}
	return d.comparison.End()
}
