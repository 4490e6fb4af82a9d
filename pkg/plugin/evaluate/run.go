// Package evaluate evaluates policies over the objects of a run. Every command that shows or makes changes
// begins with it.
package evaluate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/workload"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/impact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/metrics"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/permission"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
)

// Options are the inputs of an evaluation.
type Options struct {
	Policies
	evaluation.Options
	World *engine.World
	// Unreadable has the errors of unreadable documents, which are already reported.
	Unreadable []error
	Unread     UnreadInputs
	Overlay    map[string]int // objects of files over the cluster, by kind, for the summary
	Objects    engine.Source
	// Triggers are the objects that may trigger rules for other objects.
	Triggers engine.Source
	// MaxObjects is the maximum number of objects that change: the run ends before it exceeds it. 0 is no
	// limit.
	MaxObjects int
	Quiet      bool // no warnings
	Progress   *wording.Meter
	// FieldManager would write the changes; write.DefaultFieldManager by default.
	FieldManager string
	// Unchecked does not check values against the schema of their kind.
	Unchecked bool
	// Validator sends each change as a server dry run; may be nil.
	Validator *write.Verifier
	Counts    *metrics.Run // counts evaluated objects; may be nil
	// Narrower suggests how to run without missing permissions; may be nil.
	Narrower func(context.Context, []permission.Need) string
	ErrOut   io.Writer // notices, warnings and errors
}

// UnreadInputs are inputs of engines in the cluster that the run could not read: exceptions, and the objects
// that an engine ignores. They are already reported.
type UnreadInputs struct {
	Forbidden int     // refused to the user; the summary counts them as warnings
	Errs      []error // other errors, which leave the run incomplete
}

// Run is an evaluation whose policies are compiled.
type Run struct {
	*evaluation.Evaluation
	options  *Options
	programs []engine.Program
	rules    []engine.RuleRef
	troubles []error // errors of policies that could not be read or compiled
	unmet    []error // in a strict run, errors of rules that matched no object or warned
	workload bool    // a workload, or an object that its controller created, was evaluated
	more     bool    // more objects would change than MaxObjects
	untried  []error // errors of changes that the server did not try
	// untriedChanges counts them.
	untriedChanges int
	refused        int // changes that the server refused in a dry run
}

// ErrNoRules ends a run without a rule to evaluate.
var ErrNoRules = errors.New("no mutate rule left to evaluate")

// Compile compiles the policies. It reports broken ones and continues with the others. The error is
// ErrNoRules, with a run that knows the broken policies, or is about --only and --skip.
func (o *Options) Compile() (*Run, error) {
	out := &Run{options: o, troubles: slices.Clone(o.Unreadable)}
	programs, err := o.CompileOf(&o.Policies, &out.troubles)
	if err != nil {
		return nil, err
	}
	for _, program := range programs {
		out.rules = slices.Concat(out.rules, program.Rules())
	}
	if len(out.rules) == 0 {
		return out, ErrNoRules
	}
	var kinds []string // unknown kinds that policies name
	for _, err := range out.troubles {
		var unknown *engine.UnknownKindError
		if errors.As(err, &unknown) && !slices.Contains(kinds, unknown.Name.String()) {
			kinds = append(kinds, unknown.Name.String())
		}
	}
	if len(kinds) > 0 && !o.Quiet {
		fmt.Fprintf(o.ErrOut, "note: if these kinds are missing on purpose, add --allow-unknown-kinds=%s\n", strings.Join(kinds, ","))
	}
	out.programs = programs
	out.prepare()
	return out, nil
}

// CompileOf compiles policies, reports their errors, and adds them to troubles.
func (o *Options) CompileOf(p *Policies, troubles *[]error) ([]engine.Program, error) {
	p.Warn = func(w engine.CompileError) {
		if !o.Quiet {
			fmt.Fprintf(o.ErrOut, "%s: %v\n", w.Severity(), &w)
		}
	}
	return p.Compile(func(err error) {
		fmt.Fprintf(o.ErrOut, "error: %v\n", err)
		*troubles = append(*troubles, err)
	}, func(policies int) {
		if !o.Quiet {
			fmt.Fprintf(o.ErrOut, "note: left out, without a rule that mutates: %s\n", wording.Plural(policies, "installed policy"))
		}
	})
}

// Over returns a run of the same rules over other objects, in another world.
func (r *Run) Over(objects, triggers engine.Source, w *engine.World) *Run {
	o := *r.options
	o.World, o.Objects, o.Triggers, o.Progress = w, objects, triggers, nil
	o.Quiet, o.Strict, o.Unread = true, false, UnreadInputs{} // the first run has reported
	out := &Run{options: &o, programs: r.programs, rules: r.rules}
	out.prepare()
	return out
}

// asks are words in policies that depend on the previous state of an object.
var asks = []string{"oldObject", "objectSelector", "DELETE", `"operations":["*"`} //nolint:gochecknoglobals // an immutable table

// AsksForOld reports whether a rule may depend on the state of an object before it was changed or deleted.
func (r *Run) AsksForOld(rule engine.RuleRef) bool {
	return slices.ContainsFunc(r.options.Documents, func(d engine.Document) bool {
		if names := d.Names(); !slices.Contains(names, rule.Policy) && !slices.Contains(names, rule.Via) {
			return false
		}
		text, err := json.Marshal(d.Object().Object)
		return err != nil ||
			slices.ContainsFunc(asks, func(word string) bool { return strings.Contains(string(text), word) })
	})
}

// Triggered calls emit with the changes that triggers cause on targets, except of rules that would repeat
// them or depend on an operation.
func (r *Run) Triggered(ctx context.Context, targets []engine.Target, emit func(*engine.Change) error) error {
	once := map[engine.RuleRef]bool{}
	for _, d := range r.Descriptions() {
		once[d.Rule] = d.AsksOperation || r.AsksForOld(d.Rule)
	}
	err := r.Prepare(ctx, r.options.Triggers)
	for _, t := range targets {
		if err != nil {
			break
		}
		var c, again *engine.Change
		if c, err = r.Evaluate(ctx, t, true); err != nil {
			break
		}
		triggered := slices.ContainsFunc(c.Steps, func(s engine.Step) bool {
			return s.TriggeredBy != nil && s.Outcome != engine.Unchanged
		})
		repeats := slices.ContainsFunc(c.Steps, func(s engine.Step) bool {
			return s.Outcome == engine.Changed && (once[s.Rule] || s.NotIdempotent != "")
		})
		if c.Changed() && triggered && !repeats {
			t.Object = c.After
			again, err = r.Evaluate(ctx, t, true)
			repeats = err == nil && again.Changed()
		}
		if err == nil && triggered && !repeats {
			err = emit(c)
		}
	}
	return err
}

// World returns the world of the rules.
func (r *Run) World() *engine.World { return r.options.World }

func (r *Run) prepare() {
	o := r.options
	manager := cmp.Or(o.FieldManager, write.DefaultFieldManager)
	o.Review = (&impact.Reviewer{
		Reader: o.World.ReadsExisting(), FieldManager: manager, Unchecked: o.Unchecked,
	}).Review
	r.Evaluation = evaluation.New(r.programs, o.World, o.Options)
}

// Unexpanded counts the rules that match only Pods, and from which no rule for workloads is derived, if
// there are workloads whose Pods the run does not evaluate. Without a cluster, it looks for workloads among
// the objects.
func (r *Run) Unexpanded(ctx context.Context) int {
	only := map[engine.RuleRef]bool{}
	for _, d := range r.Descriptions() {
		rule := cmp.Or(d.From, d.Rule)
		known, seen := only[rule]
		only[rule] = (known || !seen) && d.Existing == engine.OnAdmission && len(d.Matches) > 0 &&
			!slices.ContainsFunc(d.Matches, func(s engine.Selection) bool {
				return s.Group != "" && s.Group != "*" || s.Kind != "Pod" && s.Resource != "pods" || s.Subresource != ""
			})
	}
	maps.DeleteFunc(only, func(_ engine.RuleRef, is bool) bool { return !is })
	if r.options.Expand || len(only) == 0 {
		return 0
	}
	if !r.workload && r.options.World.Document != nil {
		for page, err := range r.options.Objects.Pages(ctx,
			workload.Selections([]engine.Selection{{Kind: "Pod"}})[1:]) {
			if err != nil || page.Len() > 0 {
				r.workload = err == nil
				break
			}
		}
	}
	if !r.workload {
		return 0
	}
	return len(only)
}

// Descriptions describes the rules.
func (r *Run) Descriptions() []engine.Description { return Describe(r.programs) }

// Describe describes the rules of programs.
func Describe(programs []engine.Program) []engine.Description {
	var out []engine.Description
	for _, p := range programs {
		out = append(out, p.Describe()...)
	}
	return out
}

// Untried counts the changes that the server could not try, or that the user may not make.
func (r *Run) Untried() int { return r.untriedChanges }

// Rules returns the rules in the order of evaluation.
func (r *Run) Rules() []engine.RuleRef { return r.rules }

// Broken counts the reported errors of policies. With any of them nothing is written.
func (r *Run) Broken() int { return len(r.troubles) }

// Awaited counts the errors of policies that name an unknown kind, which may be installed later.
func (r *Run) Awaited() int {
	n := 0
	for _, err := range r.troubles {
		if unknown := (*engine.UnknownKindError)(nil); errors.As(err, &unknown) {
			n++
		}
	}
	return n
}

// BrokenText returns "2 errors in policies, which are listed above; ...".
func (r *Run) BrokenText() string {
	return wording.Plural(r.Broken(), "error") + " in policies, which are listed above; fix them, or leave their rules out with --skip"
}

// Each evaluates every object and calls emit with the result. It may be called once.
//
// An unreadable part is reported, and leaves the run incomplete. The error ends the run: a cancelled
// context, a lost connection, an error of emit.
func (r *Run) Each(ctx context.Context, emit func(*engine.Change) error) (evaluation.Summary, error) {
	o, summary := r.options, evaluation.NewSummary(r.rules)
	summary.Warnings, summary.Overlay = o.Unread.Forbidden, o.Overlay
	o.Progress.Start()
	defer o.Progress.Stop()
	if err := r.Prepare(ctx, o.Triggers); err != nil {
		return *summary, err
	}
	var lacking permission.Lacking
	var warned wording.Reasons
	err := r.run(ctx, &lacking, func(c *engine.Change) error {
		summary.Add(c)
		for i := range c.ToShow().Steps {
			if s := &c.ToShow().Steps[i]; s.Outcome.Incomplete() {
				lacking.Of(s.Err)
			}
		}
		if o.Strict {
			for _, s := range c.ToShow().Steps {
				for _, w := range s.Warnings {
					warned.Add(c.Subject, fmt.Sprintf("%s: %s: %s", s.Rule.Origin, s.Rule, w))
				}
			}
		}
		if c.Subject.Of == (engine.Maker{}) {
			o.Counts.Evaluated(c.ToShow())
		}
		o.Progress.Evaluated()
		r.workload = r.workload || workload.Is(c.Subject.GroupKind) || c.Before != nil &&
			workload.Controlled(c.Before)
		return emit(c)
	})
	summary.Settle()
	for _, part := range r.Unreadable() {
		fmt.Fprintf(o.ErrOut, "error: %v\n", part)
		lacking.Of(part)
	}
	if summary.Outdated = r.Outdated(); len(summary.Outdated) > 0 && !o.Quiet {
		fmt.Fprintf(o.ErrOut, "note: some rules read objects that this run changes (%s) and saw their current state; after applying, run again until nothing changes\n", engine.Few(summary.Outdated))
	}
	if o.MaxObjects > 0 || o.Scope != nil && o.Scope.Percent > 0 {
		summary.Canary = &evaluation.Canary{LeftOut: r.LeftOut(), MaxObjects: o.MaxObjects, More: r.more}
		if o.Scope != nil {
			summary.Canary.Percent = o.Scope.Percent
		}
	}
	if o.Strict && err == nil {
		r.reportUnmet(summary, &warned)
	}
	o.TellLacking(ctx, &lacking)
	if len(r.untried) > 0 {
		fmt.Fprintln(o.ErrOut, "hint: with --validate=client there are no dry runs; apply-existing is then the first to try the changes")
	}
	return *summary, err
}

// TellLacking prints the missing permissions, and how to run without them.
func (o *Options) TellLacking(ctx context.Context, lacking *permission.Lacking) {
	fmt.Fprint(o.ErrOut, lacking.Hint())
	if o.Narrower != nil && ctx.Err() == nil {
		fmt.Fprint(o.ErrOut, o.Narrower(ctx, lacking.Needs))
	}
}

// errEnough ends the evaluation after MaxObjects.
var errEnough = errors.New("no more objects may change")

// run evaluates the objects until more than MaxObjects would change, and with a Validator has the server try
// the changes.
func (r *Run) run(ctx context.Context, lacking *permission.Lacking, emit func(*engine.Change) error) error {
	v := &validation{run: r, emit: emit, lacking: lacking}
	if r.options.Validator != nil {
		emit = func(c *engine.Change) error { return v.add(ctx, c) }
	}
	changed := 0
	err := r.Run(ctx, r.options.Objects, func(c *engine.Change) error {
		if c.Changed() && !c.Denied() && c.Subject.Of == (engine.Maker{}) {
			if changed++; r.options.MaxObjects > 0 && changed > r.options.MaxObjects {
				return errEnough
			}
		}
		return emit(c)
	})
	if r.more = errors.Is(err, errEnough); r.more {
		err = nil
	}
	if r.options.Validator == nil {
		return err
	}
	err = cmp.Or(err, v.flush(ctx))
	r.refused = v.refused
	for _, why := range v.untried.All() {
		r.untriedChanges += why.Count
		r.untried = append(r.untried, fmt.Errorf("%s not tried on the server (%s): %s",
			wording.Plural(why.Count, "change"), why.Names(), why.Text))
		fmt.Fprintf(r.options.ErrOut, "error: %v\n", r.untried[len(r.untried)-1])
	}
	return err
}

// reportUnmet reports rules that matched no object, unless a canary or a shard has left objects out, and
// rules that warned.
func (r *Run) reportUnmet(s *evaluation.Summary, warned *wording.Reasons) {
	report := func(err error) {
		fmt.Fprintf(r.options.ErrOut, "error: %v\n", err)
		r.unmet = append(r.unmet, err)
	}
	if scope := r.options.Scope; s.Canary == nil && (scope == nil || scope.Shard.Whole()) {
		for _, rule := range r.metNothing(s) {
			report(fmt.Errorf("%s: %s matches no object of the run", rule.Origin, rule))
		}
	}
	for _, why := range warned.All() {
		report(fmt.Errorf("%s (on %s)", why.Text, why.Names()))
	}
}

// metNothing returns the rules that matched no object, neither themselves nor a rule derived from them.
// Rules for deletions do not count unless the operation is DELETE.
func (r *Run) metNothing(s *evaluation.Summary) []engine.RuleRef {
	from, deletes := map[engine.RuleRef]engine.RuleRef{}, map[engine.RuleRef]bool{}
	for _, d := range r.Descriptions() {
		from[d.Rule] = cmp.Or(d.From, d.Rule)
		deletes[d.Rule] = r.options.Request.Operation != engine.OperationDelete &&
			slices.Equal(d.Operations, []engine.Operation{engine.OperationDelete})
	}
	var out []engine.RuleRef
	met := map[engine.RuleRef]bool{}
	for i := range s.Rules {
		rule := cmp.Or(from[s.Rules[i].Rule], s.Rules[i].Rule)
		if _, known := met[rule]; !known {
			out = append(out, rule)
		}
		met[rule] = met[rule] || deletes[rule] || !s.Rules[i].MetNothing()
	}
	return slices.DeleteFunc(out, func(rule engine.RuleRef) bool { return met[rule] })
}

// Incomplete reports whether anything could not be read, compiled or evaluated, or whether the server
// refused a change or could not try it.
func (r *Run) Incomplete(s evaluation.Summary) bool {
	return r.Broken() > 0 || s.Incomplete > 0 || r.refused+len(r.Unreadable())+len(r.options.Unread.Errs)+
		len(r.unmet)+len(r.untried) > 0
}

// Problems returns the reported errors that leave the run incomplete, except those of objects.
func (r *Run) Problems() []error {
	out := slices.Concat(r.troubles, r.options.Unread.Errs, r.unmet, r.untried)
	for _, part := range r.Unreadable() {
		out = append(out, part)
	}
	return out
}
