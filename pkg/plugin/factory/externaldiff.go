package factory

import (
	"context"
	"io"
	"os"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/objectdiff"
)

// ExternalDiff compares objects with the program that the user has set. A nil ExternalDiff
// has nothing to end.
type ExternalDiff struct {
	ctx         context.Context // of the command
	program     *objectdiff.ExternalProgram
	out, errOut io.Writer
	comparison  *objectdiff.ExternalComparison // nil until there is an object to compare
}

// ExternalDiff returns the program that the user has set, or nil, for the format that uses one.
// A program that cannot be found is an error.
func (f *Factory) ExternalDiff(ctx context.Context, format string) (*ExternalDiff, error) {
	command := os.Getenv(objectdiff.ExternalVariable)
	if command == "" || format != formats.Diff {
		return nil, nil // the user has set none
	}
	program, err := objectdiff.FindExternal(command)
	if err != nil {
		return nil, err
	}
	return &ExternalDiff{ctx: ctx, program: program, out: f.stdout, errOut: f.Streams.ErrOut}, nil
}

// Add implements output.Comparer.
func (d *ExternalDiff) Add(name, before, after string) error {
	if d.comparison == nil {
		var err error
		if d.comparison, err = d.program.Begin(); err != nil {
			return err
		}
	}
	return d.comparison.Add(name, before, after)
}

// Compare implements output.Comparer.
func (d *ExternalDiff) Compare() error {
	if d.comparison == nil {
		return nil
	}
	return d.comparison.Run(d.ctx, d.out, d.errOut)
}

// End removes the temporary files.
func (d *ExternalDiff) End() error {
	if d == nil || d.comparison == nil {
		return nil
	}
	return d.comparison.End()
}
