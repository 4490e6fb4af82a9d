package preview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/impact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/metrics"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/progress"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/rbac"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Options are the inputs of an evaluation.
type Options struct {
	Policies
	Unreadable []error // of documents that could not be read; already reported
	// Unheeded counts the inputs of the cluster that the user may not read, and Unknown
	// has the errors of others, which leave the run incomplete. Both are already reported.
	ForbiddenInputs int
	UnreadInputs    []error
	Objects         engine.Source
	// Triggers are the objects that may trigger rules for others; nil for Objects.
	Triggers engine.Source
	// Chosen reports which objects the run shows; nil for all (evaluation.Options).
	Chosen func(engine.ObjectKey) bool
	// Namespace is the only one in which triggers are looked for; empty for all
	// (evaluation.Options).
	Namespace string
	World     *engine.World
	Request   engine.Request
	Reasons   bool
	Annotate  bool // targets of mutate-existing rules
	Quiet     bool // no warnings
	Progress  *progress.Meter
	// FieldManager would write the changes; empty stands for apply.DefaultFieldManager.
	FieldManager string
	Counts       *metrics.Run // counts what is evaluated; nil counts nothing
	ErrOut       io.Writer    // notices, warnings and errors
}

// Run is an evaluation whose policies are compiled.
type Run struct {
	options    *Options
	evaluation *evaluation.Evaluation
	rules      []engine.RuleRef
	troubles   []error // of policies that could not be read or compiled
}

// ErrNoRules ends a run in which there is nothing to evaluate.
var ErrNoRules = errors.New("no mutate rule left to evaluate")

// Compile compiles the policies. It reports each that is broken, and continues with the others.
// The error is ErrNoRules, or that of a --only or --skip that names no rule.
func (o *Options) Compile() (*Run, error) {
	out := &Run{options: o, troubles: slices.Clone(o.Unreadable)}
	programs, err := o.Policies.Compile(CompileOptions{
		Limits: o.World.Limits, Annotate: o.Annotate, Warn: o.warn, Idle: o.reportIdle,
		Broken: func(broken error) {
			fmt.Fprintf(o.ErrOut, "error: %v\n", broken)
			out.troubles = append(out.troubles, broken)
		},
	})
	if err != nil {
		return nil, err
	}
	for _, program := range programs {
		out.rules = append(out.rules, program.Rules()...)
	}
	if len(out.rules) == 0 {
		return nil, ErrNoRules
	}
	reviewer := &impact.Reviewer{Reader: o.World.Reader, FieldManager: cmp.Or(o.FieldManager, apply.DefaultFieldManager)}
	out.evaluation = evaluation.New(programs, o.World, evaluation.Options{
		Reasons: o.Reasons, Chosen: o.Chosen, Namespace: o.Namespace, Request: o.Request, Review: reviewer.Review,
	})
	return out, nil
}

func (o *Options) warn(w engine.CompileError) {
	if !o.Quiet {
		fmt.Fprintf(o.ErrOut, "warning: %v\n", &w)
	}
}

func (o *Options) reportIdle(policies int) {
	if !o.Quiet {
		fmt.Fprintf(o.ErrOut, "note: left out, without a rule that mutates: %s\n", wording.Plural(policies, "installed policy"))
	}
}

// Rules returns the rules that are evaluated, in their order.
func (r *Run) Rules() []engine.RuleRef { return r.rules }

// Broken counts the policies, or rules of them, that could not be read or compiled.
func (r *Run) Broken() int { return len(r.troubles) }

// Each evaluates every object and calls emit with the result. It may be called once.
//
// What may not be read is reported, and leaves the run incomplete. The error is one that ends
// the run: a cancelled context, a lost connection, an error of emit.
func (r *Run) Each(ctx context.Context, emit func(*engine.Change) error) (evaluation.Summary, error) {
	o, summary := r.options, evaluation.NewSummary(r.rules)
	summary.Warnings = o.ForbiddenInputs
	o.Progress.Start()
	defer o.Progress.Stop()
	triggers := o.Triggers
	if triggers == nil {
		triggers = o.Objects
	}
	if err := r.evaluation.Prepare(ctx, triggers); err != nil {
		return *summary, err
	}
	var lacking rbac.Lacking
	err := r.evaluation.Run(ctx, o.Objects, func(c *engine.Change) error {
		summary.Add(c)
		lackingIn(c, &lacking)
		o.Counts.Evaluated(c)
		o.Progress.Evaluated()
		return emit(c)
	})
	for _, part := range r.Unreadable() {
		fmt.Fprintf(o.ErrOut, "error: %v\n", part)
		lacking.Of(part)
	}
	fmt.Fprint(o.ErrOut, lacking.Hint())
	return *summary, err
}

// Evaluate evaluates one object as it is now; see evaluation.Evaluation.
func (r *Run) Evaluate(ctx context.Context, t engine.Target, scoped bool) (*engine.Change, error) {
	return r.evaluation.Evaluate(ctx, t, scoped)
}

// Unreadable are the parts of the cluster that could not be read.
func (r *Run) Unreadable() []*engine.UnreadableError { return r.evaluation.Unreadable() }

// Incomplete reports whether something could not be read, compiled or evaluated.
func (r *Run) Incomplete(s evaluation.Summary) bool {
	return r.Broken() > 0 || s.Incomplete > 0 || len(r.Unreadable())+len(r.options.UnreadInputs) > 0
}

// Problems returns the reported errors that leave the run incomplete, other than those of
// objects.
func (r *Run) Problems() []error {
	out := slices.Concat(r.troubles, r.options.UnreadInputs)
	for _, part := range r.Unreadable() {
		out = append(out, part)
	}
	return out
}
