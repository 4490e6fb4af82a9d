// Package output defines the events of a run, and the Printer that shows them.
//
// The commands emit events. The printers are below: human for people, structured for
// programs, and report for the formats of --report; formats chooses among them.
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

// Event is something that a run finds or does: a Fleet, an Evaluated, a Compared, a Converted, a Written, a
// Problem, a Tested, a Summary, a Comparison, a Conversion or a Tests.
type Event interface{ event() }

// Fleet begins what is shown of a run over several clusters: what came of each.
type Fleet struct{ Clusters []Cluster }

// Cluster is what came of a run on one cluster of several.
type Cluster struct {
	Name    string `json:"name"` // of the context
	Server  string `json:"server,omitempty"`
	Objects int    `json:"objects"`
	// objects that would change, of a comparison that differ, or of a run that writes that were written
	Changed int `json:"changed"`
	Failed  int `json:"incomplete"` // objects that are incomplete, or that could not be written
	Pods    int `json:"pods"`       // that would restart
	// Problems counts what went wrong besides the objects. Problem is the first of it; empty if all that was
	// chosen was evaluated.
	Problems int    `json:"problems"`
	Problem  string `json:"problem,omitempty"`
}

// Evaluated is an object, and what the policies would change on it.
type Evaluated struct{ *engine.Change }

// Summary ends the evaluation with its counts. A run that writes starts writing after it.
type Summary struct{ evaluation.Summary }

// Written is the outcome of an object that was to be written.
type Written struct{ *write.Result }

// Problem is an error that is not about one object: a policy that does not compile,
// objects that may not be listed. Without it, a run that saw half of the objects would
// look like one that found nothing.
type Problem struct{ Err error }

// Compared is an object, and what two sets of policies make of it.
type Compared struct {
	*compare.Result
	// Difference is that of the Result.
	Difference *engine.Change
}

// Comparison ends a comparison with its counts.
type Comparison struct{ compare.Summary }

// Converted is a policy, what it was converted to, and what both were compared on. Its strings are as they
// may be shown.
type Converted struct {
	Policy, Origin string // the kind and name; FILE:LINE
	Old, New       string // as YAML; New is empty where no rule is converted
	Verdict        string
	Notes, Refused []string // what the new policies do otherwise; why rules are not converted
	Exercised      compare.Summary
}

// Conversion ends a conversion. Title sums it up.
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

// Ends reports whether an event ends what is evaluated, compared or converted.
func Ends(e Event) bool {
	switch e.(type) {
	case Summary, Comparison, Conversion, Tests:
		return true
	}
	return false
}

// Printer takes the events of a run.
type Printer interface {
	// Print shows an event. It keeps no object of it, and modifies none.
	Print(Event) error
	// Close ends the output of a run that was finished. Nothing may be printed after it.
	Close() error
}

// Format shows a run. It decides nothing: it shows what is in an event, and ignores the events that it has no
// place for. It escapes control characters, and writes the same bytes for the same events.
type Format interface {
	// Print shows an event. It keeps no object of it, and modifies none.
	Print(Shown) error
	// Close is that of a Printer.
	Close() error
}

// Shown is an event as it may be shown. Show alone makes one: so no Format can forget what is secret.
type Shown struct{ event Event }

// Event returns the event as it may be shown.
func (s Shown) Event() Event { return s.event }

// Show returns an event without what Secrets hold, and what was made of them; or with secrets as it is.
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

// NewPrinter returns a printer that shows events with a format, as they may be shown.
func NewPrinter(f Format, secrets bool) Printer { return printer{f, secrets} }

type printer struct {
	Format
	secrets bool
}

// Print implements Printer.
func (p printer) Print(e Event) error { return p.Format.Print(Show(e, p.secrets)) }

// Flush implements Flusher.
func (p printer) Flush() error { return Flush(p.Format) }

// Flusher is a Printer, or a Format, that may hold events, to show them together.
type Flusher interface {
	// Flush prints the events that were held, for a run that breaks off before its Summary.
	Flush() error
}

// Flush has a printer print what it may hold back.
func Flush(p any) error {
	if f, ok := p.(Flusher); ok {
		return f.Flush()
	}
	return nil
}

// Tee shows a run with several printers, each event with all of them before the next.
// The first that fails to print an event ends that, except for a Summary: it goes to
// all of them, since a report that is closed without it would show an empty run.
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

// Close closes all printers, even if one of them fails.
func (t tee) Close() error {
	var errs []error
	for _, p := range t {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// Listed reports whether the formats that list objects list this one: it differs, or
// needs a remark; with all reasons every object is listed.
func Listed(c *engine.Change, reasons bool) bool {
	return c.Changed() || reasons || len(c.Impacts) > 0 ||
		slices.ContainsFunc(c.Steps, func(s engine.Step) bool {
			return s.Outcome == engine.Changed || s.Outcome.Incomplete() || len(s.Warnings) > 0
		})
}
