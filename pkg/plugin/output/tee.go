package output

import (
	"errors"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Tee shows a run to several printers, each in the order in which it happens. The
// first one that fails ends the run.
func Tee(printers ...Printer) Printer {
	if len(printers) == 1 {
		return printers[0]
	}
	return tee(printers)
}

type tee []Printer

// Print implements Printer.
func (t tee) Print(c engine.Change) error {
	for _, p := range t {
		if err := p.Print(c); err != nil {
			return err
		}
	}
	return nil
}

// Flush implements Flusher.
func (t tee) Flush() error {
	var errs []error
	for _, p := range t {
		errs = append(errs, Flush(p))
	}
	return errors.Join(errs...)
}

// Close closes all, whatever becomes of one of them.
func (t tee) Close(s engine.Summary) error {
	var errs []error
	for _, p := range t {
		errs = append(errs, p.Close(s))
	}
	return errors.Join(errs...)
}
