package gatekeeper

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

type run struct {
	program   *program
	clock     *limit.Clock // of all mutators on the object
	at        atomic.Int64 // the current mutator
	target    engine.Target
	candidate candidate
	object    *unstructured.Unstructured // with the changes so far
	history   []history                  // for each mutator
	changes   int                        // by all mutators in all rounds
	failed    int                        // index of the mutator that failed, or -1
	endless   error                      // set if the mutators do not converge
	schema    func() engine.Schema
}

type history struct {
	unmet   *criterion // in the last round; nil if it matched
	matched bool       // in any round
	skip    error      // why it skipped something in the last round
	empty   location   // a list without elements to change, in the last round
	err     error
	// after is the object after its last change, which was the last-th of all changes; times counts its changes.
	after       *unstructured.Unstructured
	last, times int
	warning     engine.Warning
}

func newRun(p *program, t engine.Target) *run {
	operation := t.Request.Operation
	if t.Request.Open() {
		operation = engine.OperationUpdate
	}
	return &run{
		program: p, target: t, object: t.Object, history: make([]history, len(p.mutators)), failed: -1,
		candidate: candidate{
			Object: t.Object.Object, Key: t.Key, Namespace: t.Namespace, Operation: operation,
		},
	}
}

// String names the current mutator.
func (r *run) String() string { return r.program.mutators[r.at.Load()].ref.String() }

// converge runs the set until a round changes nothing, or ends with its initial object. The latter is not
// checked in the first round: if it holds there, it holds in the second too, which usually changes nothing.
func (r *run) converge() {
	rounds := min(r.program.rounds, limit.Rounds)
	for round := range rounds {
		start, before := r.object, r.changes
		for i := range r.program.mutators {
			if !r.step(i) {
				r.abandon()
				return
			}
		}
		if r.changes == before || round > 0 && diff.Equal(start.Object, r.object.Object, diff.Type{}) {
			r.settle()
			return
		}
	}
	limited := ""
	if rounds < r.program.rounds {
		limited = ", the limit of this program"
	}
	r.endless = refused(fmt.Errorf("mutation not converging: the object still changes after %d rounds%s", rounds, limited))
	r.abandon()
}

// step runs one mutator; false if it fails or panics.
func (r *run) step(i int) bool {
	h := &r.history[i]
	var out walked
	err := engine.Guard(func() (err error) {
		out, err = r.attempt(i, r.object, h)
		return err
	})
	if err != nil {
		h.err = err
		if errors.Is(err, errNoNamespace) { // not the object's fault: the others run
			return true
		}
		r.failed = i
		return false
	}
	if out.Changed {
		r.changes++
		r.object = &unstructured.Unstructured{Object: out.Object}
		h.after, h.last = r.object, r.changes
		h.times++
	}
	return true
}

func (r *run) attempt(i int, object *unstructured.Unstructured, h *history) (walked, error) {
	m := r.program.mutators[i]
	r.at.Store(int64(i))
	if err := r.clock.Step(); err != nil {
		return walked{}, err
	}
	r.candidate.Object = object.Object
	var err error
	if h.unmet, err = m.criteria.match(&r.candidate); err != nil {
		return walked{}, fmt.Errorf("%w: %s cannot be read", err, r.target.Key.Namespace)
	}
	if h.unmet != nil {
		return walked{}, nil
	}
	h.matched = true
	if h.skip = r.target.Ignored.By(m.ref); h.skip != nil {
		return walked{}, nil
	}
	set := func(current any, exists bool) (assignment, error) {
		return m.action.set(r.target.Key, current, exists)
	}
	out, err := walk(object.Object, way{Path: m.path, Tests: m.tests, Set: set, Clock: r.clock})
	if err == nil && out.Changed {
		err = engine.SameObject(object.Object, out.Object)
	}
	var over *limit.Error
	var another *engine.IdentityError
	switch {
	case errors.As(err, &over), errors.As(err, &another):
		return out, err
	case err != nil:
		return out, refused(err)
	}
	h.skip, h.empty = out.Skip, out.Empty
	switch {
	case !out.Changed:
	case out.Warn != "":
		h.warning = engine.Warning(out.Warn)
	case out.Bare != nil:
		h.warning = engine.Warning(fmt.Sprintf("there was nothing to prune, and %s was created on the way there, as Gatekeeper does", out.Bare))
	}
	return out, nil
}

func (r *run) abandon() { r.object = r.target.Object }

// settle assigns each mutator the object to report for its step. A mutator that changed the object in several
// rounds has one step, at its last change, where the actual object would attribute its earlier changes to
// others. So each mutator runs once more from the start, in the order of their last changes; if the result is
// the same, these objects are reported.
func (r *run) settle() {
	if !slices.ContainsFunc(r.history, func(h history) bool { return h.times > 1 }) {
		return
	}
	object := r.target.Object
	states := map[int]*unstructured.Unstructured{}
	for _, i := range r.changed() {
		var ignored history
		out, err := r.attempt(i, object, &ignored)
		if err != nil {
			return
		}
		if out.Changed {
			object = &unstructured.Unstructured{Object: out.Object}
		}
		states[i] = object
	}
	if !diff.Equal(object.Object, r.object.Object, diff.Type{}) {
		return
	}
	for i, state := range states {
		r.history[i].after = state
	}
	r.object = object
}

// changed returns the mutators that changed the object, by their last change.
func (r *run) changed() []int {
	var out []int
	for i := range r.history {
		if r.history[i].times > 0 {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(a, b int) int { return cmp.Compare(r.history[a].last, r.history[b].last) })
	return out
}

// report reports a step for each mutator: first the unchanging ones by ID, then the others by their last
// change.
func (r *run) report(sink engine.Sink) {
	changed := r.changed()
	if r.failed >= 0 || r.endless != nil {
		changed = nil
	}
	for i := range r.history {
		if changed == nil || r.history[i].times == 0 {
			sink.Step(r.stepOf(i, sink))
		}
	}
	for _, i := range changed {
		sink.Step(r.stepOf(i, sink))
	}
}

func (r *run) stepOf(i int, sink engine.Sink) engine.Step {
	h, m := &r.history[i], r.program.mutators[i]
	step := engine.Step{Rule: m.ref}
	var value *external
	switch {
	case h.err != nil:
		step.Outcome, step.Err = engine.Failed, h.err
	case r.endless != nil && h.times > 0:
		step.Outcome, step.Err = engine.Failed, r.endless
	case !h.matched:
		step.Outcome = engine.NotMatched
		if sink.Wants(engine.NotMatched) {
			step.Err = r.reason(i)
		}
	case r.failed >= 0:
		step.Outcome, step.Err = engine.Skipped, engine.HeldBack(r.program.mutators[r.failed].ref.Policy)
	case r.endless != nil:
		step.Outcome, step.Err = engine.Skipped, r.endless
	case h.times > 0:
		step.Outcome, step.After = engine.Changed, h.after
		if h.warning != "" {
			step.Warnings = append(step.Warnings, h.warning)
		}
	case errors.As(h.skip, &value):
		step.Outcome, step.Err = engine.Unsupported, h.skip
	case h.skip != nil:
		step.Outcome, step.Err = engine.Skipped, h.skip
	default:
		step.Outcome = engine.Unchanged
		if h.empty != nil && sink.Wants(engine.Unchanged) {
			step.Err = fmt.Errorf("%s has no elements", h.empty)
		}
		if found := r.misspelt(h.empty); found != nil {
			step.Warnings = append(step.Warnings, engine.Warning(found.Error()))
		}
	}
	return step
}

// misspelt returns a server's error for an empty list: an unknown field, or a field that is not a list.
func (r *run) misspelt(list location) error {
	if len(list) == 0 {
		return nil
	}
	fields := r.schema().Fields
	if fields == nil {
		return nil
	}
	var at fieldpath.Path
	for _, n := range list {
		element := fieldpath.PathElement{Index: new(int)} // any index
		if f, isField := n.(fieldNode); isField {
			name := string(f)
			element = fieldpath.PathElement{FieldName: &name}
		}
		at = append(at, element)
	}
	if found := fields.Validate(at, []any{}); len(found) > 0 {
		text := fmt.Sprintf("spec.location finds nothing: %s %s", engine.PathString(found[0].Path), found[0].Why)
		if found[0].Meant != "" {
			text += "; did you mean " + found[0].Meant + "?"
		}
		return errors.New(text)
	}
	return nil
}

func (r *run) reason(i int) error {
	h := &r.history[i]
	if h.unmet == nil { // an earlier mutator failed first
		return engine.HeldBack(r.program.mutators[r.failed].ref.Policy)
	}
	c := r.candidate
	c.Object = r.object.Object
	return r.program.mutators[i].criteria.explain(h.unmet, &c)
}
