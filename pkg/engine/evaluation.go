package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// EvaluationOptions tune a run. The zero value is ready for use.
type EvaluationOptions struct {
	// Workers is how many objects are evaluated side by side; 0 stands for one
	// per processor. The order of the results never depends on it.
	Workers int
	// Reasons keeps the steps that did not match, with their reasons.
	Reasons bool
	// Request is simulated for objects that only a mutate-existing rule reached.
	Request Request
	// Review, where it is set, may add Impacts to each Change to which a rule wrote,
	// before Run hands it over. Workers call it side by side. Its error ends the run.
	Review func(context.Context, *Evaluation, *Change) error
}

// Evaluation is one run of compiled programs over a set of objects.
//
// It visits the objects twice at the most. Prepare lets each trigger of a
// mutate-existing rule leave its Effects, which are small. Run then visits every
// object once: its own chain of programs first, then the Effects that name it.
// So two triggers that change one target compose, no object is reported twice,
// and apart from the Effects memory does not grow with the number of objects.
type Evaluation struct {
	programs   []Program // in admission order
	world      *World
	options    EvaluationOptions
	types      typeCache
	effects    effectIndex
	triggers   map[ObjectKey]*recorder // what triggers have to report, by identity
	unreadable []*UnreadableError
}

// NewEvaluation joins the programs, in admission order, and the world they ask.
func NewEvaluation(programs []Program, w *World, o EvaluationOptions) *Evaluation {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	return &Evaluation{
		programs: programs, world: w, options: o,
		triggers: map[ObjectKey]*recorder{},
	}
}

// Unreadable lists what the sources could not read so far.
func (e *Evaluation) Unreadable() []*UnreadableError { return e.unreadable }

// Prepare is the first pass: it collects the Effects of all triggers that the
// source streams. It reads nothing when no program propagates.
func (e *Evaluation) Prepare(ctx context.Context, src Source) error {
	var selections []Selection
	var programs []propagation
	for i, p := range e.programs {
		if q, ok := p.(Propagator); ok && q.Propagates() {
			selections = append(selections, p.Selections()...)
			programs = append(programs, propagation{Propagator: q, order: newRuleOrder(i, p.Rules())})
		}
	}
	if len(programs) == 0 {
		return nil
	}
	work := job[*triggered]{
		workers: e.options.Workers,
		do:      func(ctx context.Context, t Target) (*triggered, error) { return e.trigger(ctx, t, programs) },
		take:    e.keep,
	}
	err := work.run(ctx, e.pages(ctx, src, selections))
	e.effects.sort()
	return err
}

// Run is the second pass: it hands over one Change for every object, in source
// order, then for the targets of Effects that the source did not stream. The
// error of emit ends the run.
func (e *Evaluation) Run(ctx context.Context, src Source, emit func(*Change) error) error {
	var selections []Selection
	for _, p := range e.programs {
		selections = append(selections, p.Selections()...)
	}
	visited := map[ObjectKey]bool{}
	work := job[*Change]{
		workers: e.options.Workers,
		do:      func(ctx context.Context, t Target) (*Change, error) { return e.reviewed(ctx, t, true) },
		take: func(c *Change) error {
			if len(e.effects.on(c.Subject, c.Before)) > 0 {
				visited[c.Subject.Named()] = true
			}
			e.reportTrigger(c)
			return emit(c)
		},
	}
	if err := work.run(ctx, e.pages(ctx, src, selections)); err != nil {
		return err
	}
	if err := e.runUnvisited(ctx, visited, emit); err != nil {
		return err
	}
	return e.runLeftTriggers(emit)
}

// Evaluate says what would become of one object: by its own rules, if it is in
// the user's scope, and by the Effects that name it.
func (e *Evaluation) Evaluate(ctx context.Context, t Target, scoped bool) (*Change, error) {
	rec := &recorder{reasons: e.options.Reasons}
	object := t.Object
	var err error
	if scoped {
		if object, err = e.chain(ctx, t, rec); err != nil {
			return nil, err
		}
	}
	for _, effect := range e.effects.on(t.Key, t.Object) {
		run := func() (*unstructured.Unstructured, error) { return effect.Apply(ctx, t.With(object), e.world, rec) }
		if object, err = guarded(effect.Rule(), t.With(object), rec, run); err != nil {
			return nil, err
		}
	}
	return e.change(ctx, t, scoped, rec)
}

// reviewed evaluates one object and has what came of it reviewed.
func (e *Evaluation) reviewed(ctx context.Context, t Target, scoped bool) (*Change, error) {
	c, err := e.Evaluate(ctx, t, scoped)
	if err != nil || e.options.Review == nil || !c.Writes() {
		return c, err
	}
	return c, e.options.Review(ctx, e, c)
}

// chain runs all programs in admission order, and then once more those that a
// later one changed the object behind, or that ask for it themselves: the API
// server's reinvocation. Which of its rules a program runs again is its own
// business.
func (e *Evaluation) chain(ctx context.Context, t Target, s Sink) (*unstructured.Unstructured, error) {
	object, last := t.Object, 0
	invocations := make([]Invocation, len(e.programs))
	for i, p := range e.programs {
		t.Invocation = &invocations[i]
		next, err := e.runProgram(ctx, p, t.With(object), s)
		if err != nil {
			return nil, err
		}
		if next != object {
			object, last = next, i
		}
	}
	t.Request.Reinvocation = true
	for i, p := range e.programs {
		if t.Invocation = &invocations[i]; i >= last && !t.Invocation.Again {
			continue
		}
		var err error
		if object, err = e.runProgram(ctx, p, t.With(object), s); err != nil {
			return nil, err
		}
	}
	return object, nil
}

func (e *Evaluation) runProgram(ctx context.Context, p Program, t Target, s Sink) (*unstructured.Unstructured, error) {
	return guarded(RuleRef{Policy: "policies"}, t, s, func() (*unstructured.Unstructured, error) {
		return p.Evaluate(ctx, t, e.world, s)
	})
}

// guarded keeps a panic in a dialect, or in a library that it stands on, from
// taking down the run: it becomes a failed step, and the object goes on as it was.
func guarded(r RuleRef, t Target, s Sink, run func() (*unstructured.Unstructured, error)) (out *unstructured.Unstructured, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.Step(Step{Rule: r, Subject: t.Key, Outcome: Failed, Err: &PanicError{Value: p, Place: panicPlace()}})
			out, err = t.Object, nil
		}
	}()
	return run()
}

// PanicError reports a defect of this program that an object or a policy set off.
type PanicError struct {
	Value any
	Place string // the line of source that panicked
}

// Error asks for a report, with what is needed to find the defect.
func (e *PanicError) Error() string {
	return fmt.Sprintf("internal error, please report it: %v (at %s)", e.Value, e.Place)
}

// panicPlace is where the panic that is being recovered from came from.
func panicPlace() string {
	callers := make([]uintptr, 32)
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers)]) // behind this and the deferred function
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "runtime.") {
			return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		}
		if !more {
			return "unknown"
		}
	}
}

// recorder is the Sink of one object.
type recorder struct {
	reasons    bool
	steps      []Step
	notMatched []RuleRef
}

// Wants asks for the reasons of everything but, as a rule, of what did not match.
func (r *recorder) Wants(o Outcome) bool { return o != NotMatched || r.reasons }

// Step records what a rule did.
func (r *recorder) Step(s Step) {
	if !r.Wants(s.Outcome) {
		r.notMatched = append(r.notMatched, s.Rule)
		return
	}
	r.steps = append(r.steps, s)
}

// isUnreadable notes an error that only takes a part of a listing away.
func (e *Evaluation) isUnreadable(err error) bool {
	var u *UnreadableError
	if !errors.As(err, &u) {
		return false
	}
	for _, known := range e.unreadable { // both passes read the same lists
		if known.What == u.What {
			return true
		}
	}
	e.unreadable = append(e.unreadable, u)
	return true
}
