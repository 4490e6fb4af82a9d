package formats

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// Results are the reports of a run that writes. That one of them cannot be written
// ends no run: Close tells it.
type Results struct {
	destinations
	masker  *redact.Masker
	reports []*result
	// broken are the findings of objects that are still to be written, of which the
	// evaluation of a rule failed.
	broken map[engine.ObjectKey][]report.Finding
	order  []engine.ObjectKey
	// errors tells that a finding of an object is an error.
	errors bool
}

// result is a report whose file is there when it is closed.
type result struct {
	report.Results
	file   *file.File // nil for a stream
	failed error      // the first of what went wrong with it
}

// OpenResults is Open for the reports of a run that writes. It refuses formats that
// describe the state of objects.
func OpenResults(named []string, o Options) (*Results, error) {
	out := &Results{masker: report.Masker(o.Render), broken: map[engine.ObjectKey][]report.Finding{}}
	err := out.each(named, o, func(name string, r output.Options, f *file.File) error {
		format, err := formatOf(name, ResultNames())
		if err != nil {
			return err
		}
		if format.results == nil {
			return fmt.Errorf("%s says how objects are, as preview finds them, and not what was written: use one of %s", name, ResultNames())
		}
		out.reports = append(out.reports, &result{Results: format.results(r), file: f})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Instead tells that a report takes the place of what -o prints.
func (r *Results) Instead() bool { return r.instead }

// BesidePreview returns a printer that shows what would change, and also tells the
// reports which rules could not be evaluated.
func (r *Results) BesidePreview(p output.Printer) output.Printer {
	if len(r.reports) == 0 {
		return p
	}
	return output.Tee(p, evaluated{r})
}

// Results returns a printer of what -o prints and of the reports. These are written
// by Close.
func (r *Results) Results(p output.ResultPrinter) output.ResultPrinter {
	if len(r.reports) == 0 {
		return p
	}
	return &beside{shown: p, reports: r}
}

// Add takes what came of an object.
func (r *Results) Add(came *apply.Result) {
	if len(r.reports) == 0 {
		return
	}
	o := report.OfResult(came, r.masker)
	if found, ok := r.broken[o.Key.Named()]; ok {
		o.Findings = joined(o.Findings, found)
		delete(r.broken, o.Key.Named())
	}
	r.add(o)
}

func (r *Results) add(o report.Object) {
	r.errors = r.errors || slices.ContainsFunc(o.Findings, func(f report.Finding) bool { return f.Verdict == report.Error })
	for _, p := range r.reports {
		if p.failed == nil {
			p.failed = p.Add(o)
		}
	}
}

// TellErrors tells whether the reports were told of an object that is in error.
func (r *Results) TellErrors() bool { return r.errors }

// Trouble tells the reports what went wrong beside the objects.
func (r *Results) Trouble(problems ...error) {
	for _, p := range r.reports {
		for _, problem := range problems {
			if p.failed == nil {
				p.failed = p.Trouble(problem)
			}
		}
	}
}

// Close writes the reports. Its error tells which could not be, and of these there
// is no file, or that of the run before.
func (r *Results) Close() error {
	for _, key := range r.order {
		if found, ok := r.broken[key]; ok {
			r.add(report.Object{Key: key, Name: report.NameOf(key), Findings: found})
		}
	}
	var errs []error
	for _, p := range r.reports {
		errs = append(errs, p.close())
	}
	return errors.Join(errs...)
}

func (p *result) close() error {
	err := p.failed
	if err == nil {
		err = p.Write()
	}
	switch {
	case p.file == nil:
		return err
	case err != nil:
		return errors.Join(err, p.file.Discard())
	}
	return p.file.Commit()
}

// evaluated is a printer that keeps which rules could not be evaluated.
type evaluated struct{ results *Results }

// Print keeps the findings in error.
func (p evaluated) Print(c engine.Change) error {
	if !c.Incomplete() {
		return nil
	}
	o := report.Describe(&c, p.results.masker)
	var found []report.Finding
	for i := range o.Findings {
		if f := o.Findings[i]; f.Verdict == report.Error {
			f.Changed, f.Fields = 0, nil // what it would change is up to the result
			found = append(found, f)
		}
	}
	key := o.Key.Named()
	p.results.broken[key] = found
	p.results.order = append(p.results.order, key)
	return nil
}

// Close has nothing to do.
func (p evaluated) Close(engine.Summary) error { return nil }

// joined are the findings of an object that was written, and those of which the
// evaluation failed. One rule may be in both.
func joined(written, broken []report.Finding) []report.Finding {
	var out []report.Finding
	for _, b := range broken {
		for i := range written {
			if w := &written[i]; w.Rule == b.Rule {
				b.Changed, b.Fields = w.Changed, w.Fields
				b.Notes = append(append([]string(nil), b.Notes...), w.Message)
			}
		}
		out = append(out, b)
	}
	for i := range written {
		if !hasRule(broken, written[i].Rule) {
			out = append(out, written[i])
		}
	}
	return out
}

func hasRule(findings []report.Finding, rule engine.RuleRef) bool {
	for i := range findings {
		if findings[i].Rule == rule {
			return true
		}
	}
	return false
}

// beside shows results, and has the reports told of them.
type beside struct {
	shown   output.ResultPrinter
	reports *Results
}

// Print shows one result, unless a report is shown instead.
func (b *beside) Print(r apply.Result) error {
	b.reports.Add(&r)
	if b.reports.instead {
		return nil
	}
	return b.shown.Print(r)
}

// Close ends what is shown.
func (b *beside) Close() error {
	if b.reports.instead {
		return nil
	}
	return b.shown.Close()
}
