package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/impact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/progress"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/secret"
)

// EvaluateOptions are what both verbs need to say what would change.
type EvaluateOptions struct {
	Documents  []engine.Document // policies and their inputs
	Unreadable []error           // of documents that could not be read; they have been told
	Dialects   []engine.Dialect
	Rules      engine.RuleFilter
	Objects    engine.Source
	World      *engine.World
	Request    engine.Request
	Reasons    bool
	Annotate   bool // targets of mutate-existing rules
	Quiet      bool // no warnings
	Progress   *progress.Meter
	// FieldManager would write the changes; empty stands for apply.DefaultFieldManager.
	FieldManager string
	Metrics      Metering
	ErrOut       io.Writer      // notices, warnings and errors
	Masker       *secret.Masker // of the errors that end a run; nil shows everything
}

// evaluation is a run whose policies are compiled.
type evaluation struct {
	*engine.Evaluation
	objects  engine.Source
	rules    []engine.RuleRef
	broken   int     // policies, or rules of them, that could not be read or compiled
	troubles []error // what is the matter with them
	errOut   io.Writer
	metrics  Metering
	meter    *progress.Meter
}

// errNoRules ends a run in which there is nothing to evaluate.
var errNoRules = errors.New("no mutate rule left to evaluate")

// compile compiles the policies. Those that are broken are told one by one; the
// others go on.
func (o *EvaluateOptions) compile() (*evaluation, error) {
	out := &evaluation{objects: o.Objects, errOut: o.ErrOut, broken: len(o.Unreadable), troubles: slices.Clone(o.Unreadable), metrics: o.Metrics, meter: o.Progress}
	var programs []engine.Program
	var seen []engine.RuleRef
	for _, d := range o.Dialects {
		mine := accepted(d, o.Documents)
		if len(mine) == 0 {
			continue
		}
		program, err := d.Compile(engine.Compilation{
			Documents: mine, Rules: o.Rules, Limits: o.World.Limits, Annotate: o.Annotate,
			Warn: o.warn,
		})
		for _, broken := range unjoin(err) {
			if o.concerns(broken) {
				fmt.Fprintf(o.ErrOut, "error: %v\n", broken)
				out.broken++
				out.troubles = append(out.troubles, broken)
			}
		}
		if program != nil {
			programs, seen = append(programs, program), append(seen, program.Rules()...)
		}
	}
	if err := o.checkFilter(seen); err != nil {
		return nil, err
	}
	if len(seen) == 0 {
		return nil, errNoRules
	}
	out.rules = seen
	reviewer := &impact.Reviewer{Reader: o.World.Reader, FieldManager: cmp.Or(o.FieldManager, apply.DefaultFieldManager)}
	out.Evaluation = engine.NewEvaluation(programs, o.World, engine.EvaluationOptions{
		Reasons: o.Reasons, Request: o.Request, Review: reviewer.Review,
	})
	return out, nil
}

func (o *EvaluateOptions) warn(w engine.CompileError) {
	if !o.Quiet {
		fmt.Fprintf(o.ErrOut, "warning: %v\n", &w)
	}
}

// accepted are the documents that mean something to a dialect; none at all when
// there is no policy among them.
func accepted(d engine.Dialect, documents []engine.Document) []engine.Document {
	var out []engine.Document
	policies := 0
	for _, doc := range documents {
		role := d.Accepts(doc.Object.GroupVersionKind().GroupKind())
		if role == engine.Policy {
			policies++
		}
		if role != engine.Foreign {
			out = append(out, doc)
		}
	}
	if policies == 0 {
		return nil
	}
	return out
}

// compiled are the documents that mean something to a dialect in use. The others,
// Secrets above all, are the world of manifests: beside a cluster nothing reads them.
func (o *EvaluateOptions) compiled() []engine.Document {
	var in []func(engine.Document) bool
	for _, d := range o.Dialects {
		if len(accepted(d, o.Documents)) > 0 {
			in = append(in, func(doc engine.Document) bool {
				return d.Accepts(doc.Object.GroupVersionKind().GroupKind()) != engine.Foreign
			})
		}
	}
	return slices.DeleteFunc(slices.Clone(o.Documents), func(doc engine.Document) bool {
		return !slices.ContainsFunc(in, func(reads func(engine.Document) bool) bool { return reads(doc) })
	})
}

// concerns tells whether an error is of a policy or rule that the user wants
// evaluated: one that is broken can be left out like any other.
func (o *EvaluateOptions) concerns(err error) bool {
	var e *engine.CompileError
	if !errors.As(err, &e) {
		return true
	}
	r := brokenRef(e)
	ofPolicy := func(wanted string) bool { return r.Rule == "" && strings.HasPrefix(wanted, r.Policy+"/") }
	return o.Rules.Keeps(r) || slices.ContainsFunc(o.Rules.Only, ofPolicy)
}

// brokenRef is how --only and --skip name what did not compile.
func brokenRef(e *engine.CompileError) engine.RuleRef {
	_, name, _ := strings.Cut(e.Policy, " ") // "ClusterPolicy team-labels"
	return engine.RuleRef{Policy: name, Rule: e.Rule}
}

// checkFilter refuses an --only or --skip that names nothing. A typing error in
// the one would look like a policy that changes nothing; in the other, a rule
// that was to be left out would be applied.
func (o *EvaluateOptions) checkFilter(kept []engine.RuleRef) error {
	if err := checkNamed("--only", o.Rules.Only, kept); err != nil || len(o.Rules.Skip) == 0 {
		return err
	}
	return checkNamed("--skip", o.Rules.Skip, o.all())
}

func checkNamed(flag string, names []string, rules []engine.RuleRef) error {
	for _, name := range names {
		if !slices.ContainsFunc(rules, engine.RuleFilter{Only: []string{name}}.Keeps) {
			return fmt.Errorf("%s %s: no such policy or rule", flag, name)
		}
	}
	return nil
}

// all names every rule, chosen or not, and what is too broken to have any.
func (o *EvaluateOptions) all() []engine.RuleRef {
	var out []engine.RuleRef
	for _, d := range o.Dialects {
		mine := accepted(d, o.Documents)
		if len(mine) == 0 {
			continue
		}
		program, err := d.Compile(engine.Compilation{Documents: mine, Limits: o.World.Limits, Warn: func(engine.CompileError) {}})
		if program != nil {
			out = append(out, program.Rules()...)
		}
		for _, broken := range unjoin(err) {
			var e *engine.CompileError
			if errors.As(broken, &e) {
				out = append(out, brokenRef(e))
			}
		}
	}
	return out
}

// unjoin takes an error of errors.Join apart; only its outermost layer, since
// what a reason wraps is part of that reason.
func unjoin(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var out []error
	for _, e := range joined.Unwrap() {
		out = append(out, unjoin(e)...)
	}
	return out
}

// each evaluates every object and hands over what came of it.
func (e *evaluation) each(ctx context.Context, emit func(*engine.Change) error) (engine.Summary, error) {
	summary := engine.NewSummary(e.rules)
	e.meter.Start()
	defer e.meter.Stop()
	if err := e.Prepare(ctx, e.objects); err != nil {
		return *summary, err
	}
	var refused refusals
	err := e.Run(ctx, e.objects, func(c *engine.Change) error {
		summary.Add(c)
		refused.in(c)
		e.metrics.Evaluated(c)
		e.meter.Evaluated()
		return emit(c)
	})
	for _, part := range e.Unreadable() {
		fmt.Fprintf(e.errOut, "error: %v\n", part)
		refused.of(part)
	}
	refused.tell(e.errOut)
	return *summary, err
}

// incomplete tells whether the result leaves something open.
func (e *evaluation) incomplete(s engine.Summary) bool {
	return e.broken > 0 || s.Incomplete > 0 || len(e.Unreadable()) > 0
}

// problems are the errors that have been told, and leave something open beside the
// objects.
func (e *evaluation) problems() []error {
	out := slices.Clone(e.troubles)
	for _, part := range e.Unreadable() {
		out = append(out, part)
	}
	return out
}

// plural is "1 object", "2 objects".
func plural(n int, noun string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s", noun)
	}
	if strings.HasSuffix(noun, "y") {
		noun = strings.TrimSuffix(noun, "y") + "ie"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
