package formats

import (
	"errors"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
)

// Set are the reports of a run.
type Set struct {
	destinations
	printers []*printer
}

// Open begins the reports that are named as FORMAT=FILE. It refuses what cannot be
// written before anything is done, and creates no file yet.
func Open(named []string, o Options) (*Set, error) {
	out := &Set{}
	err := out.each(named, o, func(name string, r output.Options, f *file.File) error {
		format, err := formatOf(name, Names())
		if err != nil {
			return err
		}
		p, err := format.make(r)
		if err != nil {
			return err
		}
		out.printers = append(out.printers, &printer{Printer: p, file: f})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Beside returns a printer of what -o prints and of the reports.
func (s *Set) Beside(p output.Printer) output.Printer {
	var all []output.Printer
	if !s.instead {
		all = append(all, p)
	}
	for _, report := range s.printers {
		all = append(all, report)
	}
	return output.Tee(all...)
}

// Trouble tells the reports what went wrong beside the objects.
func (s *Set) Trouble(problems []error) error {
	for _, p := range s.printers {
		for _, problem := range problems {
			if t, ok := p.Printer.(report.Troubled); ok {
				if err := t.Trouble(problem); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// End removes what a run that broke off has left behind; its reports are not
// there, or are those of the run before.
func (s *Set) End() error {
	var errs []error
	for _, p := range s.printers {
		if e, ok := p.Printer.(interface{ End() error }); ok {
			errs = append(errs, e.End())
		}
	}
	for _, f := range s.files {
		errs = append(errs, f.Discard())
	}
	return errors.Join(errs...)
}

// printer is a report whose file is there when it is closed.
type printer struct {
	output.Printer
	file *file.File // nil for a stream
}

// Close ends the report, and gives the file its name if all went well.
func (p *printer) Close(summary engine.Summary) error {
	if err := p.Printer.Close(summary); err != nil || p.file == nil {
		return err
	}
	return p.file.Commit()
}
