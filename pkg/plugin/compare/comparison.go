// Package compare compares two sets of policies over the objects of a run.
package compare

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare/variant"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/evaluate"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/permission"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Comparison has the inputs of a comparison.
type Comparison struct {
	// Options are for both sides: their world and objects.
	*evaluate.Options
	Sides [2]evaluate.Policies
	// Variants is the maximum number of variants that are compared, and Seed chooses among them.
	Variants int
	Seed     uint64
	// ShowSecrets as in compare.Options.
	ShowSecrets bool
	// DependingVariants also compares variants on which a side depends on a Secret. Which of them differ
	// reveals it, so only whether any does may be shown.
	DependingVariants bool
}

// Run is a comparison whose policies are compiled.
type Run struct {
	options      *Comparison
	comparison   *compare.Comparison
	derived      *compare.Comparison // of variants; may be nil
	world        *variant.World      // of variants
	descriptions [2][]engine.Description
	troubles     []error
	warned       wording.Reasons // of objects
	warnings     map[string]int  // numbers of variants by warning
}

// Compile compiles both sides. It reports broken policies, and continues with the others. The error is about
// a side without rules, or --only and --skip.
func (o *Comparison) Compile() (*Run, error) {
	out := &Run{options: o, troubles: slices.Clone(o.Unreadable), warnings: map[string]int{}}
	var programs [2][]engine.Program
	for side := range o.Sides {
		var err error
		if programs[side], err = o.CompileOf(&o.Sides[side], &out.troubles); err != nil {
			return nil, fmt.Errorf("the %s policies: %w", compare.Side(side), err)
		}
		out.descriptions[side] = evaluate.Describe(programs[side])
		if len(out.descriptions[side]) == 0 {
			return nil, fmt.Errorf("the %s policies: %w", compare.Side(side), evaluate.ErrNoRules)
		}
	}
	operations := o.operations(out.descriptions)
	options := compare.Options{
		Workers: o.Workers, Scope: o.Scope, Request: o.Request,
		Operations: operations, ShowSecrets: o.ShowSecrets, Expand: o.Expand,
	}
	out.comparison = compare.NewComparison(programs, o.World, options)
	if o.Variants > 0 {
		options.Scope, options.Expand = nil, false // they may be anywhere
		out.world = variant.NewWorld(o.World, out.texts())
		out.derived = compare.NewComparison(programs, o.World, options)
	}
	return out, nil
}

// operations returns the requests to compare, unless the user chose one: UPDATE, CREATE if rules may differ
// then, and DELETE if rules ask for it.
func (o *Comparison) operations(sides [2][]engine.Description) []engine.Operation {
	if o.Request.Operation != engine.OperationAuto {
		return []engine.Operation{o.Request.Operation}
	}
	var created, deleted bool
	for _, rules := range sides {
		for _, d := range rules {
			created = created || d.AsksOperation
			deleted = deleted || slices.Contains(d.Operations, engine.OperationDelete)
		}
	}
	out := []engine.Operation{engine.OperationUpdate}
	if created {
		out = append(out, engine.OperationCreate)
	}
	if deleted {
		out = append(out, engine.OperationDelete)
	}
	return out
}

// Each compares the sides on every object, and calls emit with each result. It may be called once. The error
// ends the run.
func (r *Run) Each(ctx context.Context, emit func(*compare.Result) error) (compare.Summary, error) {
	o, tally := r.options, r.comparison.NewTally()
	o.Progress.Start()
	defer o.Progress.Stop()
	from := bases{map[string]bool{}, map[string][]engine.Target{}, map[string]int{}, nil}
	err := r.comparison.Prepare(ctx, o.Triggers)
	if err == nil {
		err = r.comparison.Run(ctx, o.Objects, func(result *compare.Result) error {
			tally.Add(result, wording.Brief)
			r.warn(result, func(text string) { r.warned.Add(result.Subject, text) })
			o.Progress.Evaluated()
			if r.derived != nil {
				from.add(result)
			}
			return emit(result)
		})
	}
	var lacking permission.Lacking
	for _, part := range r.comparison.Unreadable() {
		fmt.Fprintf(o.ErrOut, "error: %v\n", part)
		lacking.Of(part)
	}
	o.TellLacking(ctx, &lacking)
	var derived *compare.Tally
	var generator *variant.Generator
	if r.derived != nil && err == nil {
		derived, generator, err = r.variants(ctx, &from, emit)
	}
	summary := tally.Summary(r.comparison, r.descriptions, derived)
	if v := &summary.Variants; generator != nil {
		v.Kinds, v.Limit, v.Untried, v.Seed = len(generator.Kinds()), o.Variants, generator.Untried(), o.Seed
	}
	summary.Problems, summary.Unread = len(r.Problems()), len(r.comparison.Unreadable())
	return summary, err
}

// Problems returns the reported errors that leave the comparison incomplete, except those of objects.
func (r *Run) Problems() []error {
	out := slices.Concat(r.troubles, r.options.Unread.Errs)
	for _, part := range r.comparison.Unreadable() {
		out = append(out, part)
	}
	return out
}

// Descriptions returns the descriptions of a side's rules.
func (r *Run) Descriptions(s compare.Side) []engine.Description { return r.descriptions[s] }

// warn calls add with the distinct warnings of both sides.
func (r *Run) warn(result *compare.Result, add func(string)) {
	seen := map[string]bool{} // several requests may warn alike
	result.Steps(r.options.ShowSecrets, func(side compare.Side, s *engine.Step) {
		for _, w := range s.Warnings {
			text := fmt.Sprintf("%s: %s: %s", side, wording.Rule(s.Rule), w)
			if !seen[text] {
				seen[text] = true
				add(text)
			}
		}
	})
}

// Warnings returns the warnings of rules with the objects, such as that Kyverno itself deviates; and those
// of variants that no object has.
func (r *Run) Warnings() []string {
	var out []string
	known := map[string]bool{}
	for _, w := range r.warned.All() {
		known[w.Text] = true
		out = append(out, w.Names()+": "+w.Text)
	}
	for _, text := range slices.Sorted(maps.Keys(r.warnings)) {
		if !known[text] {
			out = append(out, wording.Plural(r.warnings[text], "variant")+": "+text)
		}
	}
	return out
}

// Unpaired names the policies of each side without a counterpart: a policy of the same name or, if several
// are made of one, with that name as its prefix. A single policy of a side is the counterpart of all.
func (r *Run) Unpaired() []string {
	var policies [2][]engine.RuleRef
	for side, rules := range r.descriptions {
		for i := range rules {
			policies[side] = append(policies[side],
				engine.RuleRef{Dialect: rules[i].Rule.Dialect, Policy: rules[i].Rule.Policy})
		}
		if policies[side] = engine.Distinct(policies[side]); len(policies[side]) == 1 {
			return nil
		}
	}
	var out []string
	for _, side := range compare.Sides() {
		for _, p := range policies[side] {
			if !slices.ContainsFunc(policies[1-side],
				func(other engine.RuleRef) bool { return paired(p, other) || paired(other, p) }) {
				out = append(out, fmt.Sprintf("%s: %s has no counterpart of its name among the %s policies", side, wording.Policy(p), 1-side))
			}
		}
	}
	return out
}

func paired(a, b engine.RuleRef) bool {
	name, other := a.Policy[strings.LastIndex(a.Policy, "/")+1:], b.Policy[strings.LastIndex(b.Policy, "/")+1:]
	return name == other || strings.HasPrefix(other, name+"-")
}
