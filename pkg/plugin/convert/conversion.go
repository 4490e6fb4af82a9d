// Package convert converts policies, and verifies each new policy by comparing it with its original on the
// objects of a run, and on variants of them.
package convert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare/variant"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert"
	plugincompare "github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/evaluate"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/impact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/input"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Conversion has the inputs of a conversion.
type Conversion struct {
	// Options as for a preview of the old policies: their world and objects.
	*evaluate.Options
	// To has the languages to try, in order.
	To []convert.Target
	// Variants is the maximum number of variants on which a policy is compared, or MoreVariants if a rule
	// changes none of these. Seed chooses among them.
	Variants, MoreVariants int
	Seed                   uint64
	// ReplicationControllers as in convert.Options.
	ReplicationControllers bool
	// Unverified keeps new policies that differ from their original.
	Unverified bool

	described map[string][]engine.Description // of the old policies, by kind and name
}

// Result is the conversion of one policy.
type Result struct {
	Document engine.Document
	To       convert.Target
	// Form has the new policies; nil if no rule is converted.
	Form *convert.Form
	// Rules are the names of its rules.
	Rules    []string
	Verdict  Verdict
	Notes    []string // differences from the old policies
	Warnings []string // about the old policy
	Refusals []*convert.Refusal
	// Before has the refusals of a language that was tried before, and can express less of the policy.
	Before []*convert.Refusal
}

// Verdict is the result of comparing old and new policies.
type Verdict struct {
	compare.Summary
	// Difference is the first one found, as it may be shown; may be nil.
	Difference *compare.Result
	Warnings   []string // about the old policy
	Notes      []string // about objects on which an engine deviates from a rule
	Err        error    // why nothing was compared
}

// Same reports whether old and new policies do the same, as far as they could be compared, and any old rule
// was exercised.
func (v *Verdict) Same() bool { return v.alike() && v.exercised() }

// Untested reports whether nothing showed a difference, since no old rule changes anything.
func (v *Verdict) Untested() bool { return v.alike() && !v.exercised() }

func (v *Verdict) alike() bool {
	return v.Err == nil && slices.Contains([]compare.Conclusion{
		compare.AllSame, compare.SameAsTested,
		compare.NotExercised,
	}, v.Conclusion)
}

func (v *Verdict) exercised() bool {
	return slices.ContainsFunc(v.Rules[compare.Old], func(e compare.Exercise) bool { return e.Exercised() })
}

// String returns the verdict for a user.
func (v *Verdict) String() string {
	on, verified := wording.Plural(v.Variants.Compared, "variant"), wording.Verified(&v.Summary)
	if objects := wording.Plural(v.Objects, "object"); v.Variants.Compared == 0 {
		on = objects
	} else if v.Objects > 0 {
		on = objects + " and " + on
	}
	switch {
	case v.Err != nil:
		return "not compared: " + v.Err.Error()
	case v.Same() && len(v.NotExercised()) > 0:
		return "verified on " + verified + ", but not exercised: " + strings.Join(v.NotExercised(), ", ")
	case v.Same():
		return "verified on " + verified
	case v.Conclusion == compare.SomeDiffer:
		return "not the same on all of " + on + ": " + v.difference()
	case v.Untested():
		return "not exercised: no rule changes any of " + on + "; missing for " +
			strings.Join(v.NotExercised(), ", ")
	case v.Conclusion == compare.Nothing:
		return "not compared: there is no object, and no variant"
	}
	return "not comparable on " + on + why(v.Difference)
}

// notes returns notes on what the comparison leaves out, and where an engine deviates from a rule.
func (v *Verdict) notes() []string {
	if n := v.Reordered + v.Variants.Reordered; n > 0 {
		v.Notes = append(v.Notes, "init containers, which start one after the other, come in another order on "+wording.Number(n)+" objects and variants")
	}
	if v.Variants.Refused == 0 {
		return v.Notes
	}
	return append(v.Notes, "on "+wording.Plural(v.Variants.Refused, "more variant")+" a server refuses the result of the old policy, and the new form differs")
}

// NotExercised returns, for each old rule that changed no object and no variant, what is missing: nothing
// shows whether its new form does the same.
func (v *Verdict) NotExercised() []string {
	var out []string
	for _, e := range v.Summary.NotExercised(compare.Old) {
		if v.Err == nil {
			out = append(out, fmt.Sprintf("rule %s (%s)", e.Written.Rule, e.Missing))
		}
	}
	return out
}

func (v *Verdict) difference() string {
	r := v.Difference
	object := "an object"
	if u := r.Target.Object; u != nil {
		object = u.GetKind() + " " + u.GetName()
		if r.Variant != nil {
			object = "a variant of " + u.GetKind() + wording.Requested(r.Variant)
		}
	}
	var fields []string
	for _, f := range r.Fields {
		fields = append(fields, engine.PathString(f.Path))
	}
	in := ""
	if len(fields) > 0 {
		in = " in " + engine.Few(fields)
	}
	return fmt.Sprintf(described[r.Verdict], object) + in + why(r)
}

// described words the verdict on an object.
//
//nolint:gochecknoglobals // an immutable table
var described = map[compare.Verdict]string{
	compare.Differs:        "both change %s, not alike",
	compare.OnlyOldChanges: "only the old policy changes %s",
	compare.OnlyNewChanges: "only the new policies change %s",
	compare.OnlyOldDenies:  "only the old policy denies %s",
	compare.OnlyNewDenies:  "only the new policies deny %s",
	compare.NotComparable:  "%s is not comparable",
}

// why names the step that failed, if any.
func why(r *compare.Result) string {
	if r == nil {
		return ""
	}
	for _, change := range r.Changes {
		if change == nil {
			continue
		}
		for i := range change.Steps {
			if s := &change.Steps[i]; s.Err != nil && (s.Outcome.Incomplete() || s.Outcome == engine.Denied) {
				return fmt.Sprintf(" (%s: %v)", s.Rule.Policy, s.Err)
			}
		}
	}
	return ""
}

// Run converts the selected rules of every ClusterPolicy and Policy, and calls emit with each result. The
// error ends the run.
func (o *Conversion) Run(ctx context.Context, emit func(*Result) error) error {
	if err := o.checkChoice(ctx); err != nil {
		return err
	}
	reading := *o.Options
	reading.Objects = readOnce(o.Objects)
	if o.Triggers != nil {
		reading.Triggers = readOnce(o.Triggers)
	}
	if o.World.Registry == nil {
		var policies []*unstructured.Unstructured
		for _, d := range o.Documents {
			policies = append(policies, d.Object())
		}
		world := *o.World
		world.Registry = variant.NewRegistry(policies)
		reading.World = &world
	}
	if reading.Request.User.Empty() { // every request has one
		reading.Request.User = engine.UserInfo{Username: "user", Groups: []string{"system:authenticated"}}
	}
	o.described = map[string][]engine.Description{}
	accepted := slices.DeleteFunc(slices.Clone(o.Documents),
		func(d engine.Document) bool { return !convert.Accepts(d) })
	// the inputs of policies
	reading.Documents = slices.DeleteFunc(slices.Clone(o.Documents), func(d engine.Document) bool {
		return engine.RoleOf(d.Key.GroupKind, o.Dialects) == engine.Policy
	})
	for _, d := range accepted {
		o.described[nameOf(d)] = convert.Describe(d)
	}
	o.Options = &reading
	o.Progress.Start()
	defer o.Progress.Stop()
	taken := map[string]bool{}
	for i, d := range accepted {
		o.Progress.Did("policies converted", i, len(accepted))
		result, err := o.convert(ctx, d, taken)
		if err != nil {
			return err
		}
		if result == nil {
			continue
		}
		if result.Form != nil {
			result.Notes = append(result.Notes, o.between(result)...)
			for _, name := range result.Form.Names() {
				taken[name] = true
			}
		}
		if err := emit(result); err != nil {
			return err
		}
	}
	return nil
}

func nameOf(d engine.Document) string {
	return d.Key.Kind + " " + strings.TrimPrefix(d.Key.Namespace+"/"+d.Key.Name, "/")
}

// between returns notes on fields that the new policies read and another policy writes: the order of
// evaluation is not defined.
func (o *Conversion) between(r *Result) []string {
	var out []string
	mine, reads := o.described[nameOf(r.Document)], r.Form.Reads()
	for _, name := range slices.Sorted(maps.Keys(o.described)) {
		for i := range o.described[name] {
			rule := &o.described[name][i]
			if name == nameOf(r.Document) || rule.From != (engine.RuleRef{}) ||
				!slices.ContainsFunc(mine, func(m engine.Description) bool { return meet(&m, rule) }) {
				continue
			}
			for _, field := range rule.Changes {
				if reads(field) {
					out = append(out, fmt.Sprintf("%s is read, which %s writes, too: policies in CEL are evaluated in no defined order", field, name))
				}
			}
		}
	}
	return engine.Distinct(out)
}

// meet reports whether two rules may concern the same object.
func meet(a, b *engine.Description) bool {
	for _, s := range slices.Concat(a.Matches, a.Targets) {
		for _, t := range slices.Concat(b.Matches, b.Targets) {
			if s.MatchesKind(engine.ObjectKey{GroupKind: schema.GroupKind{Group: t.Group, Kind: t.Kind}}) ||
				t.MatchesKind(engine.ObjectKey{GroupKind: schema.GroupKind{Group: s.Group, Kind: s.Kind}}) {
				return true
			}
		}
	}
	return false
}

func (o *Conversion) conversion(ctx context.Context, d engine.Document, to convert.Target,
	taken map[string]bool,
) *convert.Conversion {
	return convert.Convert(ctx, d, convert.Options{
		To: to, Mapper: o.World.Mapper, Reader: o.World.Reader, Documents: o.Documents, Taken: taken,
		ReplicationControllers: o.ReplicationControllers,
	})
}

// refs returns the names of a rule for --only and --skip.
func refs(d engine.Document, rule string) (out []engine.RuleRef) {
	for _, policy := range d.Names() {
		out = append(out, engine.RuleRef{Policy: policy, Rule: rule})
	}
	return out
}

// checkChoice returns an error for an --only or --skip without a policy or rule.
func (o *Conversion) checkChoice(ctx context.Context) error {
	unknown := slices.Concat(o.Policies.Rules.Only, o.Policies.Rules.Skip)
	for _, d := range o.Documents {
		if len(unknown) == 0 {
			return nil
		}
		if !convert.Accepts(d) {
			continue
		}
		c := o.conversion(ctx, d, o.To[0], nil)
		rules := c.Rules()
		for _, refusal := range c.Refusals {
			rules = append(rules, refusal.Rule)
		}
		unknown = slices.DeleteFunc(unknown, func(name string) bool {
			keeps := engine.RuleFilter{Only: []string{name}}.Keeps()
			return slices.ContainsFunc(rules, func(rule string) bool { return keeps(refs(d, rule)...) })
		})
	}
	if len(unknown) > 0 {
		return fmt.Errorf("--only or --skip %s: no such policy or rule", unknown[0])
	}
	return nil
}

// convert converts a policy to the first language that can express all of it, or else most of it. The new
// policies get no name that is taken.
func (o *Conversion) convert(ctx context.Context, d engine.Document, taken map[string]bool) (*Result, error) {
	var best *Result
	for _, to := range o.To {
		c := o.conversion(ctx, d, to, taken)
		c = c.Only(func(rule string) bool { return o.Policies.Rules.Keeps()(refs(d, rule)...) })
		if len(c.Rules())+len(c.Refusals) == 0 {
			return nil, nil
		}
		result, err := o.verify(ctx, c, d)
		if err != nil {
			return nil, err
		}
		result.To = to
		if best == nil || len(result.Rules) > len(best.Rules) {
			if best != nil {
				result.Before = best.Refusals
			}
			best = result
		}
		if len(result.Refusals) == 0 {
			break
		}
	}
	return best, nil
}

// verify finds the first form that does the same. If there is none, it looks for the rules that differ.
func (o *Conversion) verify(ctx context.Context, c *convert.Conversion, d engine.Document) (*Result, error) {
	out := &Result{Document: d, Refusals: c.Refusals}
	if len(c.Rules()) == 0 {
		return out, nil
	}
	form, verdict, err := o.try(ctx, d, c)
	if err != nil {
		return nil, err
	}
	out.Warnings = verdict.Warnings
	if verdict.Same() || verdict.Untested() || o.Unverified {
		out.Form, out.Verdict, out.Rules, out.Notes = form, verdict, c.Rules(),
			append(c.Notes(), verdict.notes()...)
		return out, nil
	}
	var verified []string
	for _, name := range c.Rules() {
		one := verdict
		if len(c.Rules()) > 1 && !c.Inseparable() {
			if _, one, err = o.try(ctx, d, c.Only(func(rule string) bool { return rule == name })); err != nil {
				return nil, err
			}
		}
		if one.Same() {
			verified = append(verified, name)
			continue
		}
		refusal := &convert.Refusal{Rule: name, Reason: "its new form was not verified: " +
			one.String(), Instead: "--unverified prints it"}
		if one.Difference != nil && one.Difference.Subject.Kind == "ReplicationController" &&
			!o.ReplicationControllers {
			refusal.Instead = "--replication-controllers keeps the rules for them"
		}
		out.Refusals = append(out.Refusals, refusal)
	}
	if len(verified) == 0 {
		return out, nil
	}
	some := c.Only(func(rule string) bool { return slices.Contains(verified, rule) })
	if form, verdict, err = o.try(ctx, d, some); err != nil {
		return nil, err
	}
	if !verdict.Same() {
		for _, name := range verified {
			out.Refusals = append(out.Refusals, &convert.Refusal{Rule: name, Reason: "it is verified by itself, but not together with the other rules: " + verdict.String(), Instead: "--unverified prints it"})
		}
		return out, nil
	}
	out.Form, out.Verdict, out.Rules, out.Notes = form, verdict, verified,
		append(some.Notes(), verdict.notes()...)
	return out, nil
}

// try compares the forms of a conversion with its original, until one does the same. Forms that reorder init
// containers are second choice, and forms that differ third.
func (o *Conversion) try(ctx context.Context, d engine.Document,
	c *convert.Conversion,
) (*convert.Form, Verdict, error) {
	var best *convert.Form
	said := Verdict{Err: errors.New("its rules have no form in common")}
	for _, form := range c.Forms() {
		verdict := o.compare(ctx, d, c.Old(), form, o.Variants)
		if idle := verdict.alike() && verdict.Unexercised() > 0; idle && o.MoreVariants > o.Variants {
			verdict = o.compare(ctx, d, c.Old(), form, o.MoreVariants)
		}
		if old := c.Whole(); old != nil && verdict.alike() {
			if onObjects := o.compare(ctx, d, old, form, 0); onObjects.Conclusion == compare.SomeDiffer {
				verdict = onObjects
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, verdict, err
		}
		if verdict.Same() && verdict.Reordered == 0 || verdict.Untested() {
			return form, verdict, nil
		}
		if best == nil || verdict.Same() && !said.Same() {
			best, said = form, verdict
		}
	}
	return best, said, nil
}

// compare compares the new policies, as they are printed, with the old one.
func (o *Conversion) compare(ctx context.Context, d engine.Document, policy *unstructured.Unstructured,
	form *convert.Form, variants int,
) Verdict {
	documents, err := (&input.Reader{Stdin: strings.NewReader(form.String())}).ReadAll(ctx,
		input.Files{Paths: []string{"-"}})
	if err != nil {
		return Verdict{Err: err}
	}
	options := *o.Options
	var said strings.Builder
	options.ErrOut, options.Quiet, options.Progress, options.Unreadable = &said, false, nil, nil
	options.Unread = evaluate.UnreadInputs{}
	side := func(mine ...engine.Document) evaluate.Policies {
		p := o.Policies
		p.Documents, p.Strict, p.Rules, p.Annotate = append(mine, o.Documents...), false, engine.RuleFilter{}, false
		p.Refused = true
		return p
	}
	old := engine.NewDocument(policy, d.Origin)
	run := plugincompare.Comparison{
		Options: &options, Sides: [2]evaluate.Policies{compare.Old: side(old), compare.New: side(documents...)},
		Variants: variants, Seed: o.Seed, DependingVariants: true,
	}
	compiled, err := run.Compile()
	if err != nil {
		return Verdict{Err: fmt.Errorf("%w\n%s", err, withoutWarnings(said.String()))}
	}
	if problems := compiled.Problems(); len(problems) > 0 {
		return Verdict{Err: errors.Join(problems...)}
	}
	var out Verdict
	var changed []engine.ObjectKey // by triggers, on installation of the policy
	pods := 0
	out.Summary, out.Err = compiled.Each(ctx, func(r *compare.Result) error {
		if new := r.Changes[compare.New]; r.Variant == nil && new.Changed() &&
			slices.ContainsFunc(new.Steps, func(s engine.Step) bool { return s.TriggeredBy != nil }) {
			changed, pods = append(changed, r.Subject), pods+impact.Restarted(new)
		}
		if r.Verdict != compare.Same && (out.Difference == nil || !out.Difference.Verdict.Differs()) {
			out.Difference, _ = r.ToShow()
		}
		return nil
	})
	if 2*out.Variants.Unknown > out.Variants.Compared && out.alike() {
		out.Conclusion = compare.Incomparable
	}
	out.Notes = append(compiled.Warnings(), installing(compiled, changed, pods)...)
	file := d.Origin + ":"
	if i := strings.LastIndex(d.Origin, ":"); i >= 0 { // messages may name another line
		file = d.Origin[:i+1]
	}
	for line := range strings.Lines(said.String()) {
		if strings.HasPrefix(line, "warning: "+file) || strings.HasPrefix(line, "note: "+file) {
			out.Warnings = append(out.Warnings, strings.TrimSpace(line))
		}
	}
	return out
}

// installing returns what a policy for existing objects changes on installation, and the permissions that
// Kyverno needs for that and for lists.
func installing(r *plugincompare.Run, changed []engine.ObjectKey, pods int) []string {
	var out []string
	if len(changed) > 0 {
		text := fmt.Sprintf("to install the new policy changes %s at once: %s", wording.Plural(len(changed), "object"), engine.Few(changed))
		if pods > 0 {
			text += "; " + wording.Plural(pods, "Pod") + " restart"
		}
		out = append(out, text)
	}
	for _, d := range r.Descriptions(compare.Old) {
		for _, t := range d.Targets {
			out = append(out, "Kyverno needs the permissions to get, list and update "+engine.Selection{Group: t.Group, Kind: t.Kind}.String())
		}
	}
	for _, d := range r.Descriptions(compare.New) {
		for _, a := range d.Asks {
			if d.Rule.Dialect == string(convert.MutatingPolicy) && a.Of == engine.AskObjects &&
				a.Objects.Kind+a.Objects.Resource != "" && a.Objects.Name == "" {
				out = append(out, "Kyverno needs the permission to list "+a.Objects.String())
			}
		}
	}
	return engine.Distinct(out)
}

// withoutWarnings returns only the errors.
func withoutWarnings(said string) string {
	var b strings.Builder
	for line := range strings.Lines(said) {
		if !strings.HasPrefix(line, "warning: ") && !strings.HasPrefix(line, "note: ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// maxKept is the maximum number of objects that once keeps.
const maxKept = 2500

// once is a source that reads each set of selections once: every form of a policy is compared on the same
// objects. Objects beyond the limit are read again.
type once struct {
	engine.Source
	kept map[string][]engine.Page
	left int
}

func readOnce(s engine.Source) *once {
	return &once{Source: s, kept: map[string][]engine.Page{}, left: maxKept}
}

// Pages implements engine.Source.
func (s *once) Pages(ctx context.Context, selections []engine.Selection) iter.Seq2[engine.Page, error] {
	text, err := json.Marshal(selections)
	if pages, ok := s.kept[string(text)]; ok && err == nil {
		return func(yield func(engine.Page, error) bool) {
			for _, p := range pages {
				if !yield(p, nil) {
					return
				}
			}
		}
	}
	return func(yield func(engine.Page, error) bool) {
		var pages []engine.Page
		complete, objects := err == nil, 0
		for p, err := range s.Source.Pages(ctx, selections) {
			if p != nil {
				objects += p.Len()
			}
			if complete = complete && err == nil && objects <= s.left; complete {
				pages = append(pages, p)
			} else {
				pages = nil
			}
			if !yield(p, err) {
				return
			}
		}
		if complete && ctx.Err() == nil {
			s.kept[string(text)] = pages
			s.left -= objects
		}
	}
}
