package evaluation

import (
	"context"
	"errors"
	"maps"
	"math"
	"runtime"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/openapi"
)

// Options tune a run. The zero value is ready for use.
type Options struct {
	// Workers is how many objects are evaluated side by side; 0 is one per processor. The order of the results
	// never depends on it.
	Workers int
	// Reasons keeps the steps that did not match, with their reasons, and adds to each object why the rules that
	// other objects trigger do not change it.
	Reasons bool
	// States keeps, in each step that changed the object, the object after it.
	States bool
	// Scope is the user's choice of the objects that may change; nil stands for everything. Other objects may
	// trigger rules, but have a Change only if a rule fails on them: its effects are unknown.
	Scope *engine.Scope
	// Request is simulated for objects that only a mutate-existing rule reached.
	Request engine.Request
	// Requests says that the sources have requests to subresources, which no selection names.
	Requests bool
	// Expand also evaluates the objects that controllers would create for the workloads of the run. Each has its
	// own Change after the workload's, with the workload in its Subject. It is never to be written.
	Expand bool
	// Ignore, if set, says which rules ignore an object that no annotation protects.
	Ignore func(*unstructured.Unstructured) engine.Ignored
	// Review, if set, sees each Change to which a rule wrote, one after the other in the order of Run. The
	// function that it returns may add Impacts to the change before Run hands it over; workers call it side by
	// side. An error ends the run.
	Review func(*engine.Change) func(context.Context, *Evaluation) error
}

// Evaluation is one run of compiled programs over a set of objects.
//
// It visits the objects at most twice. Prepare lets each trigger of a mutate-existing rule leave its Effects,
// which are small. Run then visits every object once: its own chain of programs first, then the Effects that
// name it. So two triggers that change one target compose, no object is reported twice, and apart from the
// Effects memory does not grow with the number of objects.
type Evaluation struct {
	programs   []engine.Program // in admission order
	reader     engine.Reader    // of evaluated objects
	world      *engine.World    // for programs
	options    Options
	types      engine.Memo                           // of diff.Type, by kind
	operation  engine.Operation                      // of open requests
	created    *Evaluation                           // of objects as if they were created; nil if it is the same
	asking     map[engine.RuleRef][]engine.Selection // the matches of rules that ask for the operation
	effects    effectIndex
	triggers   map[engine.ObjectKey]*triggered // the reports of triggers, by identity
	own        []engine.RuleRef                // the rules that change their matches
	others     []engine.RuleRef                // the rules that change others
	chains     *chains
	reaches    *reaches
	reaching   map[engine.RuleRef]bool // the rules that may change objects in the scope other than their matches
	leftOut    int                     // objects beyond the percentage of the scope
	unreadable []*engine.UnreadableError

	reads    reads
	lackedMu sync.Mutex
	lacked   map[string]*engine.UnreadableError // by What
}

// New returns an evaluation of programs, in admission order, in a world.
func New(programs []engine.Program, w *engine.World, o Options) *Evaluation {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	e := &Evaluation{
		programs: programs, reader: w.ReadsExisting(), options: o, operation: engine.OperationUpdate,
		triggers: map[engine.ObjectKey]*triggered{}, reaching: map[engine.RuleRef]bool{},
		lacked: map[string]*engine.UnreadableError{},
	}
	for _, p := range programs {
		for _, d := range p.Describe() {
			if d.Existing == engine.ByTrigger {
				e.others = append(e.others, d.Rule)
			} else {
				e.own = append(e.own, d.Rule)
			}
		}
	}
	e.world = e.reads.observe(w)
	e.world.Lack = func(u *engine.UnreadableError) {
		e.lackedMu.Lock()
		defer e.lackedMu.Unlock()
		e.lacked[u.What] = u
	}
	e.created = e.asCreated()
	return e
}

// Unreadable lists the unreadable parts of the sources so far, and the objects that rules lacked.
func (e *Evaluation) Unreadable() []*engine.UnreadableError {
	e.lackedMu.Lock()
	defer e.lackedMu.Unlock()
	out := slices.Clone(e.unreadable)
	if e.created != nil {
		for _, u := range e.created.unreadable {
			if !slices.ContainsFunc(out, func(known *engine.UnreadableError) bool { return known.What == u.What }) {
				out = append(out, u)
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(e.lacked)) {
		out = append(out, e.lacked[what])
	}
	return out
}

// Prepare is the first pass: it collects the Effects of all triggers of the source, which may lie outside of
// the Scope. It reads nothing when no rule can change objects in the Scope other than its matches.
func (e *Evaluation) Prepare(ctx context.Context, src engine.Source) error {
	var selections []engine.Selection
	var programs []propagation
	rules := 0
	for _, p := range e.programs {
		if q, ok := p.(engine.Propagator); ok && q.Propagates() {
			selections = append(selections, e.triggering(q)...)
			programs = append(programs, newPropagation(q, rules))
			rules += len(q.Describe())
		}
	}
	if len(selections) == 0 && !e.options.Requests {
		return nil
	}
	for _, l := range e.lanes() {
		l.chains = newChains(l, src, programs)
	}
	if e.options.Reasons {
		e.reaches = newReaches(e.chains.rules)
	}
	selections = append(selections, e.chains.relabelling()...)
	trigger := func(ctx context.Context, t engine.Target) (out []*triggered, err error) {
		for _, l := range e.lanes() {
			if l != e && !t.Request.Open() {
				break
			}
			one, err := l.trigger(ctx, t, l.chains)
			if err != nil {
				return nil, err
			}
			out = append(out, one)
		}
		return out, nil
	}
	err := eachPage(ctx, e.options.Workers, e.pages(ctx, src, selections), trigger,
		func(all [][]*triggered) error {
			for _, lanes := range all {
				for i, t := range lanes {
					e.lanes()[i].keep(t)
				}
			}
			return nil
		})
	for _, l := range e.lanes() {
		if err == nil {
			err = l.chains.follow(ctx)
		}
		slices.SortStableFunc(l.effects.all, rank)
	}
	e.reaches.index(e.effects.all)
	return err
}

// Run is the second pass: it hands over one Change for every object, in source order, then for the targets of
// Effects in the Scope that are not in the source. The source has the objects of the Scope. An error of emit
// ends the run.
func (e *Evaluation) Run(ctx context.Context, src engine.Source, emit func(*engine.Change) error) error {
	selections := Selections(e.programs, e.options.Expand)
	for _, l := range e.lanes() {
		selections = append(selections, l.chains.relabelled()...)
	}
	visited := keys{}
	evaluate := func(ctx context.Context, t engine.Target) ([]*engine.Change, error) {
		if !e.options.Scope.InPercent(t.Key) {
			return []*engine.Change{{Subject: t.Key}}, nil
		}
		c, err := e.both(ctx, t, true)
		if err != nil || !e.options.Expand {
			return []*engine.Change{c}, err
		}
		return e.expanded(ctx, c)
	}
	take := func(c *engine.Change) error {
		if c.Subject.Of != (engine.Maker{}) {
			return emit(c)
		}
		if !e.options.Scope.InPercent(c.Subject) {
			e.leaveOut(visited, c.Subject)
			return nil
		}
		if len(e.acting(c.Subject, c.Target.Object)) > 0 {
			visited.add(c.Subject)
		}
		e.complete(c)
		return emit(c)
	}
	err := eachPage(ctx, e.options.Workers, e.pages(ctx, src, selections), evaluate,
		func(all [][]*engine.Change) error {
			return e.handOver(ctx, slices.Concat(all...), take)
		})
	if err != nil {
		return err
	}
	if err := (unvisited{e, visited, emit}).run(ctx); err != nil {
		return err
	}
	return e.runLeftTriggers(emit)
}

// Selections returns the needs of Run and Prepare: the objects of the scope that rules match, and, from
// anywhere, the triggers of rules that may change others in it.
func (e *Evaluation) Selections() (own, triggers []engine.Selection) {
	for _, s := range Selections(e.programs, e.options.Expand) {
		own = append(own, e.narrow(s)...)
	}
	for _, p := range e.programs {
		if q, ok := p.(engine.Propagator); ok && q.Propagates() {
			triggers = append(triggers, e.triggering(q)...)
		}
	}
	return own, triggers
}

// complete adds the findings of the first pass to a change, and notes the change.
func (e *Evaluation) complete(c *engine.Change) {
	e.addTriggerSteps(c)
	e.differently(c)
	if c.Changed() {
		e.reads.noteChange(c.Subject)
	}
}

// Outdated lists reads of rules, besides the objects of the run, that the run changes: the rules saw the
// state before. It is known after Run.
func (e *Evaluation) Outdated() []string { return e.reads.outdated() }

// leaveOut notes an object beyond the percentage of the scope.
func (e *Evaluation) leaveOut(visited keys, k engine.ObjectKey) {
	visited.add(k)
	e.leftOut++
}

// keys is a set of object keys, by name.
type keys map[engine.ObjectKey]bool

// add adds a key, and reports whether it is new.
func (k keys) add(key engine.ObjectKey) bool {
	key = key.Named()
	known := k[key]
	k[key] = true
	return !known
}

func (k keys) has(key engine.ObjectKey) bool { return k[key.Named()] }

// LeftOut counts the objects that were not evaluated, as they are beyond the percentage of the Scope.
func (e *Evaluation) LeftOut() int { return e.leftOut }

// Evaluate returns the change of one object: by its own rules, if it is in the user's scope, and by the
// Effects that name it. An open request is an update.
func (e *Evaluation) Evaluate(ctx context.Context, t engine.Target, scoped bool) (*engine.Change, error) {
	ctx, done := limit.Object(ctx, t.Key)
	defer done()
	p := e.begin(ctx, t, e.options.Reasons)
	if err := p.evaluate(scoped); err != nil {
		return nil, err
	}
	c, err := p.change(t, scoped)
	if err == nil {
		Conceal(c)
	}
	return c, err
}

// evaluate applies the object's own rules, if wanted, and the effects on it.
func (p *pass) evaluate(own bool) error {
	if own {
		if err := p.chain(); err != nil {
			return err
		}
	}
	begun := p.target.Object
	if err := p.act(0, math.MaxInt); err != nil || p.target.Object == begun {
		return err
	}
	return p.settle(own)
}

// act applies the effects on the object of the rules from one turn to before another.
func (p *pass) act(from, to int) error {
	if p.target.Key.Of != (engine.Maker{}) {
		return nil // rules that change others act only on existing objects
	}
	for _, f := range p.effects.actingOn(p.target.Key, p.rec.before) {
		if f.turn < from || f.turn >= to {
			continue
		}
		if err := p.effect(f); err != nil {
			return err
		}
	}
	return nil
}

// handOver reviews the changes that rules wrote, and hands all over in their order.
func (e *Evaluation) handOver(
	ctx context.Context, all []*engine.Change, take func(*engine.Change) error,
) error {
	if review := e.options.Review; review != nil {
		written := slices.DeleteFunc(slices.Clone(all), func(c *engine.Change) bool { return !c.Writes() })
		reviews := make([]func(context.Context, *Evaluation) error, len(written))
		for i, c := range written {
			reviews[i] = review(c)
		}
		err := sideBySide(ctx, e.options.Workers, len(written), func(ctx context.Context, i int) error {
			c, err := written[i], reviews[i](ctx, e)
			if c.Shown != nil {
				c.Shown.Impacts = shownImpacts(c)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, c := range all {
		if err := take(c); err != nil {
			return err
		}
	}
	return nil
}

// chain runs all programs in admission order, and then, like the API server's reinvocation, once more the
// programs whose object a later one changed, or that ask for it themselves. The program decides which of its
// rules run again.
func (p *pass) chain() error {
	last, from, after := 0, 0, ""
	invocations := make([]engine.Invocation, len(p.programs))
	for _, again := range []bool{false, true} {
		if p.target.Request.Reinvocation = again; again {
			from, after = len(p.rec.steps), p.rec.lastChange()
		}
		for i, program := range p.programs {
			if again && i >= last && !invocations[i].Again {
				continue
			}
			if _, expands := program.(engine.Expander); p.target.Key.Of.Template != "" && !expands {
				continue // only its own language sees generated objects
			}
			before := p.target.Object
			p.target.Invocation = &invocations[i]
			if err := p.run(allPolicies, program.Evaluate); err != nil {
				return err
			}
			if !again && p.target.Object != before {
				last = i
			}
		}
	}
	for i := range p.rec.steps[from:] {
		p.rec.steps[from+i].Again = after
	}
	p.target.Request.Reinvocation, p.target.Invocation = false, nil
	return nil
}

// allPolicies stands for the rule in the step of a failure that no single rule caused.
//
//nolint:gochecknoglobals // immutable
var allPolicies = engine.RuleRef{Policy: "policies"}

// effect applies an effect to the object, if it has the selected labels. An effect that a Secret chose is a
// use of the Secret.
func (p *pass) effect(f *orderedEffect) error {
	if !f.selects(p.target.Object) {
		p.unselected = append(p.unselected, f)
		return nil
	}
	if f.Confidential {
		p.world.NoteSecret()
	}
	from := len(p.rec.steps)
	if err := p.target.Ignored.By(f.Rule); err != nil {
		p.rec.Step(engine.Step{
			Rule: f.Rule, TriggeredBy: new(f.Trigger), Outcome: engine.Skipped, Err: err, Confidential: f.Confidential,
		})
		return nil
	}
	err := p.run(f.Rule, func(ctx context.Context, t engine.Target, w *engine.World,
		s engine.Sink,
	) (*unstructured.Unstructured, error) {
		step := f.Apply(ctx, t, w, s)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if s.Step(step); step.Outcome != engine.Changed {
			step.After = t.Object
		}
		return step.After, nil
	})
	f.complete(p.rec.steps[from:])
	return err
}

// complete adds to the steps of an effect the fields that its rule does not know.
func (f *orderedEffect) complete(steps []engine.Step) {
	for i := range steps {
		steps[i].TriggerChangedBy = slices.DeleteFunc(slices.Clone(f.by),
			func(r engine.RuleRef) bool { return r == f.Rule })
		if f.repeats && steps[i].Outcome == engine.Changed && steps[i].NotIdempotent == "" {
			steps[i].NotIdempotent = "it changes the object that triggers it, and would change it once more"
		}
	}
}

// guarded keeps a panic in a dialect, or in a library below it, from ending the run: it becomes a failed
// step, and the object stays as it was.
func guarded(
	r engine.RuleRef, t engine.Target, s engine.Sink, run func() (*unstructured.Unstructured, error),
) (out *unstructured.Unstructured, err error) {
	err = engine.Guard(func() (err error) { out, err = run(); return err })
	if panicked(err) {
		s.Step(engine.Step{Rule: r, Outcome: engine.Failed, Err: err})
		return t.Object, nil
	}
	return out, err
}

// recorder is the Sink of one object.
type recorder struct {
	reasons bool
	states  bool // steps keep the object after them
	live    bool // the object is from a server, not from a manifest
	steps   []engine.Step
	// state is the object after the last step. Without states, steps do not keep their own, which would be one
	// object for each rule.
	state  *unstructured.Unstructured
	typ    func() diff.Type           // nil for steps that change nothing
	before *unstructured.Unstructured // the object before the first step
}

// Wants reports whether reasons for an outcome are kept: without Reasons, none of rules that did not match or
// changed nothing.
func (r *recorder) Wants(o engine.Outcome) bool {
	return o != engine.NotMatched && o != engine.Unchanged || r.reasons
}

// Step records a step, and compares the object after it with the one before: a rule that wrote an equivalent
// value has changed nothing.
func (r *recorder) Step(s engine.Step) {
	if s.Outcome == engine.NotMatched && !r.reasons {
		return
	}
	if s.Outcome == engine.Changed && r.typ != nil {
		if r.live {
			s.After = openapi.SecretAsStored(s.After)
		}
		fields, err := between(r.state, s.After, r.typ())
		writer := new(s.Rule)
		for i := range fields {
			fields[i].Writer = writer
		}
		if s.Fields = fields; len(fields) == 0 {
			s.Outcome = engine.Unchanged
		}
		if err != nil {
			s.Outcome, s.Err, s.Fields = engine.Failed, err, nil
		} else {
			r.state = s.After
		}
		if err != nil || !r.states {
			s.After = nil
		}
	}
	if s.Err != nil && s.Outcome.Incomplete() {
		s.Err = brief(s.Err)
	}
	r.steps = append(r.steps, s)
}

// lastChange names the last rule that changed the object; empty if none has.
func (r *recorder) lastChange() string {
	for i := range slices.Backward(r.steps) {
		if r.steps[i].Outcome == engine.Changed {
			return r.steps[i].Rule.String()
		}
	}
	return ""
}

// brief shortens the message of a long error to its first and last words: a page of objects keeps the reasons
// of all rules that fail on them.
func brief(err error) error {
	text := err.Error()
	if len(text) <= engine.MaxMessage {
		return err
	}
	return errors.New(engine.Ends(text, engine.MaxMessage))
}

// isUnreadable reports whether an error concerns only a part of a listing, and records it.
func (e *Evaluation) isUnreadable(err error) bool {
	var u *engine.UnreadableError
	if !errors.As(err, &u) {
		return false
	}
	e.lackedMu.Lock()
	defer e.lackedMu.Unlock()
	for _, known := range e.unreadable { // both passes read the same lists
		if known.What == u.What {
			return true
		}
	}
	e.unreadable = append(e.unreadable, u)
	return true
}
