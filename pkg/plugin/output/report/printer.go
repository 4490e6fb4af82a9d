package report

import (
	"fmt"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

// Report is a format. Its texts are masked and escaped: what is left to it is the
// syntax.
type Report interface {
	// Add adds an object and its findings.
	Add(*Object) error
	// Problem adds what went wrong beside the objects.
	Problem(Problem) error
	// Write ends the report. Of a run that writes, the summary is empty.
	Write(evaluation.Summary) error
}

// Printer writes a Report of the events of a run: of what was evaluated, or of a run
// that writes what was written.
type Printer struct {
	report  Report
	writes  bool
	summary evaluation.Summary
	errors  bool
	// failed are objects that are still to be written, with the findings of the rules
	// that could not be evaluated, and order lists them.
	failed map[engine.ObjectKey]Object
	order  []engine.ObjectKey
}

// New returns a printer of a report.
func New(o output.Options, r Report) *Printer {
	return &Printer{report: r, writes: o.Writes, failed: map[engine.ObjectKey]Object{}}
}

// Print adds an event to the report.
func (p *Printer) Print(s output.Shown) error {
	switch e := s.Event().(type) {
	case output.Evaluated:
		if p.writes {
			p.keepFailed(e.Change)
			return nil
		}
		object := Describe(e.Change)
		return p.add(&object)
	case output.Compared:
		object, err := DescribeCompared(e)
		if err != nil {
			return fmt.Errorf("%s: %w", e.Subject, err)
		}
		return p.add(&object)
	case output.Comparison:
		for _, side := range compare.Sides() {
			for i := range e.Rules[side] {
				object := DescribeExercise(side, &e.Rules[side][i])
				if err := p.add(&object); err != nil {
					return err
				}
			}
		}
	case output.Written:
		object, key := DescribeWritten(e), e.Key.Named()
		if failed, ok := p.failed[key]; ok {
			object.Findings = joined(object.Findings, failed.Findings)
			delete(p.failed, key)
		}
		return p.add(&object)
	case output.Problem:
		return p.report.Problem(ProblemOf(e.Err))
	case output.Summary:
		if !p.writes {
			p.summary = escapedSummary(e.Summary)
		}
	}
	return nil
}

func (p *Printer) add(o *Object) error {
	p.errors = p.errors || slices.ContainsFunc(o.Findings, func(f Finding) bool { return f.Verdict == Error })
	return p.report.Add(o)
}

// keepFailed keeps which rules could not be evaluated on an object.
func (p *Printer) keepFailed(c *engine.Change) {
	if !c.Incomplete() {
		return
	}
	object := Describe(c)
	object.Findings = slices.DeleteFunc(object.Findings, func(f Finding) bool { return f.Verdict != Error })
	for i := range object.Findings { // what would change is up to the write
		object.Findings[i].Changed, object.Findings[i].Fields = 0, nil
	}
	key := c.Subject.Named()
	p.failed[key] = object
	p.order = append(p.order, key)
}

// Close writes the report, with the objects that were not to be written after all.
func (p *Printer) Close() error {
	for _, key := range p.order {
		if object, ok := p.failed[key]; ok {
			if err := p.add(&object); err != nil {
				return err
			}
		}
	}
	return p.report.Write(p.summary)
}

// HasErrors reports whether a finding is an Error so far.
func (p *Printer) HasErrors() bool { return p.errors }

// joined are the findings of an object that was written, and those of the rules that
// could not be evaluated on it. One rule may be in both.
func joined(written, failed []Finding) []Finding {
	var out []Finding
	for _, f := range failed {
		for _, w := range written {
			if w.Rule == f.Rule {
				f.Changed, f.Fields = w.Changed, w.Fields
				f.Notes = append(slices.Clone(f.Notes), w.Message)
			}
		}
		out = append(out, f)
	}
	for i := range written {
		if !slices.ContainsFunc(failed, func(f Finding) bool { return f.Rule == written[i].Rule }) {
			out = append(out, written[i])
		}
	}
	return out
}
