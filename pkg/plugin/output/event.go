// Package output defines the events of a run, and the Printer that shows them.
//
// The packages below it have the printers: human for people, structured for programs, report for the formats
// of --report; formats chooses among them.
package output

import (
	"errors"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
)

// Event is something that a run finds or does.
type Event interface{ event() }

// Fleet begins the output of a run over several clusters, with the result of each.
type Fleet struct{ Clusters []Cluster }

// Cluster is the result of a run on one cluster of several.
type Cluster struct {
	Name    string `json:"name"` // of the context
	Server  string `json:"server,omitempty"`
	Objects int    `json:"objects"`
	// objects that would change; of a comparison that differ; of a run that writes that were written
	Changed int `json:"changed"`
	Failed  int `json:"incomplete"` // objects that are incomplete, or that could not be written
	Pods    int `json:"pods"`       // that would restart
	// Problems counts the errors that are not about one object. Problem is the first of them; empty if
	// everything was evaluated.
	Problems int    `json:"problems"`
	Problem  string `json:"problem,omitempty"`
}

// Evaluated is an object with the changes that the policies would make.
type Evaluated struct{ *engine.Change }

// Summary ends the evaluation with its counts. A run that writes starts writing after it.
type Summary struct{ evaluation.Summary }

// Written is the outcome of an object that was to be written.
type Written struct{ *write.Result }

// Problem is an error that is not about one object: a policy that does not compile, objects that may not be
// listed. Without it, a run that saw half of the objects would look like one that found nothing.
type Problem struct{ Err error }

// Compared is an object with the results of two sets of policies.
type Compared struct {
	*compare.Result
	// Difference is the Result's, as it may be shown.
	Difference *engine.Change
}

// Comparison ends a comparison with its counts.
type Comparison struct{ compare.Summary }

// Converted is a policy, its conversion, and the objects on which both were compared. Its strings may be
// shown.
type Converted struct {
	Policy, Origin string // kind and name; FILE:LINE
	Old, New       string // as YAML; New is empty where no rule is converted
	Verdict        string
	Notes, Refused []string // differences of the new policies; why rules are not converted
	Exercised      compare.Summary
}

// Conversion ends a conversion; Title sums it up.
type Conversion struct{ Title string }

func (Fleet) event()      {}
func (Evaluated) event()  {}
func (Compared) event()   {}
func (Converted) event()  {}
func (Conversion) event() {}
func (Comparison) event() {}
func (Summary) event()    {}
func (Written) event()    {}
func (Problem) event()    {}
func (Tested) event()     {}
func (Tests) event()      {}

// Ends reports whether an event ends the evaluation, the comparison, the conversion or the tests.
func Ends(e Event) bool {
	switch e.(type) {
	case Summary, Comparison, Conversion, Tests:
		return true
	}
	return false
}

// Printer takes the events of a run.
type Printer interface {
	// Print shows an event. It neither keeps nor modifies its objects.
	Print(Event) error
	// Close ends the output of a run that was finished. Nothing may be printed after it.
	Close() error
}

// Format shows the content of events without decisions of its own, and ignores events that it has no place
// for. It escapes control characters, and writes the same bytes for the same events.
type Format interface {
	// Print shows an event. It neither keeps nor modifies its objects.
	Print(Shown) error
	// Close ends the output, as for a Printer.
	Close() error
}

// Shown is an event as it may be shown. Only Show makes one, so that no Format can forget to mask.
type Shown struct{ event Event }

// Event returns the event.
func (s Shown) Event() Event { return s.event }

// Show returns an event without values of Secrets and values derived from them; with secrets, unchanged.
func Show(e Event, secrets bool) Shown {
	if secrets {
		return Shown{e}
	}
	switch e := e.(type) {
	case Evaluated:
		return Shown{Evaluated{redact.Change(e.Change)}}
	case Compared:
		return Shown{e.toShow()}
	case Written:
		return Shown{e.ToShow()}
	case Tested:
		return Shown{e.toShow()}
	}
	return Shown{e}
}

func (c Compared) toShow() Compared {
	result, difference := c.ToShow()
	out := Compared{Result: result, Difference: redact.Change(difference)}
	if out.Variant == nil {
		return out
	}
	shown, variant := *result, *result.Variant
	variant.Object, variant.Beside = engine.HideObject(variant.Object), slices.Clone(variant.Beside)
	for i, u := range variant.Beside {
		variant.Beside[i] = engine.HideObject(u)
	}
	shown.Variant = &variant
	out.Result = &shown
	return out
}

// NewPrinter returns a printer that shows events, masked unless secrets is set, with a format.
func NewPrinter(f Format, secrets bool) Printer { return printer{f, secrets} }

type printer struct {
	Format
	secrets bool
}

// Print implements Printer.
func (p printer) Print(e Event) error { return p.Format.Print(Show(e, p.secrets)) }

// Flush implements Flusher.
func (p printer) Flush() error { return Flush(p.Format) }

// Flusher is a Printer or Format that may hold events back, to show them together.
type Flusher interface {
	// Flush prints the events that were held back, for a run that ends before its Summary.
	Flush() error
}

// Flush makes a printer print what it holds back.
func Flush(p any) error {
	if f, ok := p.(Flusher); ok {
		return f.Flush()
	}
	return nil
}

// Tee shows each event with all printers before the next. The first failure ends that, except for a Summary,
// which goes to all printers: a report that is closed without it would show an empty run.
func Tee(printers ...Printer) Printer {
	if len(printers) == 1 {
		return printers[0]
	}
	return tee(printers)
}

type tee []Printer

// Print implements Printer.
func (t tee) Print(e Event) error {
	isSummary := Ends(e)
	var errs []error
	for _, p := range t {
		err := p.Print(e)
		if err != nil && !isSummary {
			return err
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Flush implements Flusher.
func (t tee) Flush() error {
	var errs []error
	for _, p := range t {
		errs = append(errs, Flush(p))
	}
	return errors.Join(errs...)
}

// Close closes all printers, even if one fails.
func (t tee) Close() error {
	var errs []error
	for _, p := range t {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// Listed reports whether the formats that list objects list this one, because it changes or needs a remark;
// with all reasons they list every object.
func Listed(c *engine.Change, reasons bool) bool {
	return c.Changed() || reasons || len(c.Impacts) > 0 ||
		slices.ContainsFunc(c.Steps, func(s engine.Step) bool {
			return s.Outcome == engine.Changed || s.Outcome.Incomplete() || len(s.Warnings) > 0
		})
}
