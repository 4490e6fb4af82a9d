package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
)

// Verdict is the result of comparing an object.
type Verdict string

// The verdicts, from the best to the worst.
const (
	Same           Verdict = "same"             // the resulting objects are equivalent
	Differs        Verdict = "differs"          // both sides change it, with different results
	OnlyOldChanges Verdict = "only-old-changes" // only the old side changes it
	OnlyNewChanges Verdict = "only-new-changes"
	OnlyOldDenies  Verdict = "only-old-denies" // admission rejects it on the old side only
	OnlyNewDenies  Verdict = "only-new-denies"
	NotComparable  Verdict = "not-comparable" // the result of a side is unknown
)

// Verdicts lists the verdicts, the worst last.
func Verdicts() []Verdict {
	return []Verdict{Same, Differs, OnlyOldChanges, OnlyNewChanges, OnlyOldDenies, OnlyNewDenies, NotComparable}
}

// Differs reports whether the sides behave differently.
func (v Verdict) Differs() bool { return v != Same && v != NotComparable }

func (v Verdict) worse(than Verdict) bool {
	return slices.Index(Verdicts(), v) > slices.Index(Verdicts(), than)
}

// Result is the comparison of one object.
type Result struct {
	Subject engine.ObjectKey
	Target  engine.Target
	// Verdict is the worst of all operations, and Operations are the operations with this verdict.
	Verdict    Verdict
	Operations []engine.Operation
	// Everywhere reports whether Operations are all operations that were compared.
	Everywhere bool
	// Changes are the changes of both sides in the first of the Operations.
	Changes [2]*engine.Change
	// Fields are the differing fields in path order; empty if the verdict is NotComparable.
	Fields []Field
	// Alike are differences without meaning to a server: the order of keyed list elements.
	Alike []engine.FieldChange
	// Reordered reports that Alike has a reordered init container: these start in order.
	Reordered bool
	// Variant is set for an object that was derived.
	Variant *Variant
	// Failed reports that a rule fails on the object in one of the compared requests. It then changes nothing,
	// as on a server.
	Failed bool

	lanes []*engine.Change // of all operations, for the Tally
}

// Variant describes the derived object of a Result: the smallest that shows the same result.
type Variant struct {
	Count  int      // of the variants with the same difference
	Kinds  []string // of these variants, as in "apps/Deployment"
	Object *unstructured.Unstructured
	// Request has the particulars of the request for it: its user, and whether it is a dry run.
	Request engine.Request
	// Beside are the other objects that exist with it: its Namespace if its labels or annotations matter, and
	// the objects that the rules change or read.
	Beside []*unstructured.Unstructured
	// Missing names the objects that the rules ask for and that do not exist.
	Missing []string
}

// Objects returns all objects of the variant, its subject last.
func (v *Variant) Objects() []*unstructured.Unstructured {
	return append(slices.Clone(v.Beside), v.Object)
}

// Field is a differing field: From is the value of the old side, To of the new side.
type Field struct {
	engine.FieldChange
	// Rules are the last rules that wrote the field; zero for a side that did not write it.
	Rules [2]engine.RuleRef
}

// Changed reports whether a side changes the object.
func (r *Result) Changed() bool {
	return slices.ContainsFunc(r.lanes, func(c *engine.Change) bool { return c.Changed() })
}

// Steps calls f with each step of a side in any of the requests: redacted, unless showSecrets is set.
func (r *Result) Steps(showSecrets bool, f func(Side, *engine.Step)) {
	for i, lane := range r.lanes {
		if !showSecrets {
			lane = lane.ToShow()
		}
		for j := range lane.Steps {
			f(Side(i%len(r.Changes)), &lane.Steps[j])
		}
	}
}

// DependsOnSecret reports whether the result of a side may depend on or contain the value of a Secret.
func (r *Result) DependsOnSecret() bool {
	return slices.ContainsFunc(r.lanes, func(c *engine.Change) bool { return c.Shown != nil })
}

// Difference returns the result, for printers, as a change from the old side's object to the new side's. Its
// steps are those that failed, were denied or are unsupported.
func (r *Result) Difference() *engine.Change {
	out := difference(r, r.Changes)
	if r.Changes[Old].Shown == nil && r.Changes[New].Shown == nil && !engine.IsSecret(out.Before) {
		return out
	}
	out.Shown = difference(r, [2]*engine.Change{r.Changes[Old].ToShow(), r.Changes[New].ToShow()})
	// a side may leave a Secret unchanged
	out.Shown.Before, out.Shown.After = engine.HideObject(out.Shown.Before), engine.HideObject(out.Shown.After)
	out.Shown.Target.Object = out.Shown.Before
	if len(out.Fields) > 0 { // a missing target has no states
		evaluation.ShowFields(out, out.Shown)
	}
	return out
}

// ToShow returns the redacted result and its Difference.
func (r *Result) ToShow() (*Result, *engine.Change) {
	c := r.Difference()
	if c.Shown == nil {
		return r, c
	}
	out := *r
	out.Fields = slices.Clone(r.Fields)
	for i := range out.Fields {
		out.Fields[i].FieldChange = c.Shown.Fields[i]
	}
	out.Fields = once(out.Fields)
	c.Shown.Fields = nil
	for i := range out.Fields {
		c.Shown.Fields = append(c.Shown.Fields, out.Fields[i].FieldChange)
	}
	for side := range out.Changes {
		out.Changes[side] = out.Changes[side].ToShow()
	}
	return &out, c.Shown
}

// once removes fields that are redacted like an earlier one: their number would identify them.
func once(fields []Field) []Field {
	var out []Field
	for _, f := range fields {
		at := slices.IndexFunc(out, func(o Field) bool { return f.Withheld && o.Withheld && o.Path.Equals(f.Path) })
		if at < 0 {
			out = append(out, f)
			continue
		}
		for side, rule := range f.Rules {
			if out[at].Rules[side] == (engine.RuleRef{}) {
				out[at].Rules[side] = rule
			}
		}
	}
	return out
}

func difference(r *Result, sides [2]*engine.Change) *engine.Change {
	out := &engine.Change{
		Subject: r.Subject, Target: r.Target, Scoped: true, Before: sides[Old].After, After: sides[New].After,
		Fields: make([]engine.FieldChange, len(r.Fields)),
	}
	out.Target.Object = out.Before
	for i := range r.Fields {
		out.Fields[i] = r.Fields[i].FieldChange
		rule := cmp.Or(r.Fields[i].Rules[New], r.Fields[i].Rules[Old])
		out.Fields[i].Writer = &rule
	}
	for _, side := range sides {
		for i := range side.Steps {
			if side.Steps[i].Outcome.Incomplete() {
				out.Steps = append(out.Steps, side.Steps[i])
			}
		}
	}
	return out
}

// judge compares the changes of one object. A lane without one leaves it unchanged.
func (c *Comparison) judge(ctx context.Context, lanes []*engine.Change) *Result {
	complete(lanes)
	var out *Result
	for i, operation := range c.options.Operations {
		one := c.judgeOne(ctx, [2]*engine.Change{lanes[2*i], lanes[2*i+1]})
		switch {
		case out == nil || one.Verdict.worse(out.Verdict):
			out = one
			out.Operations = []engine.Operation{operation}
		case one.Verdict == out.Verdict:
			out.Operations = append(out.Operations, operation)
		}
	}
	out.lanes, out.Failed = lanes, slices.ContainsFunc(lanes, failed)
	out.Everywhere = len(out.Operations) == len(c.options.Operations)
	return out
}

// complete fills in lanes without a change of the object.
func complete(lanes []*engine.Change) {
	known := lanes[slices.IndexFunc(lanes, func(c *engine.Change) bool { return c != nil })]
	for i := range lanes {
		if lanes[i] == nil {
			lanes[i] = &engine.Change{
				Subject: known.Subject, Target: known.Target, Before: known.Before,
				After: known.Before,
			}
		}
	}
}

func (c *Comparison) judgeOne(ctx context.Context, sides [2]*engine.Change) *Result {
	oldSide, newSide := sides[Old], sides[New]
	out := &Result{Subject: oldSide.Subject, Target: oldSide.Target, Verdict: Same, Changes: sides}
	denied := [2]bool{oldSide.Denied(), newSide.Denied()}
	switch {
	case unknown(oldSide) || unknown(newSide):
		out.Verdict = NotComparable
		return out
	case denied[Old] && denied[New]:
		return out
	case denied[Old]:
		out.Verdict = OnlyOldDenies
		return out
	case denied[New]:
		out.Verdict = OnlyNewDenies
		return out
	}
	c.addFields(ctx, out)
	switch {
	case len(out.Fields) == 0:
	case !oldSide.Changed():
		out.Verdict = OnlyNewChanges
	case !newSide.Changed():
		out.Verdict = OnlyOldChanges
	default:
		out.Verdict = Differs
	}
	return out
}

func failed(c *engine.Change) bool {
	return slices.ContainsFunc(c.Steps, func(s engine.Step) bool { return s.Outcome == engine.Failed })
}

// unknown reports whether a side's result is unknown: a rule is unsupported, or failed for a reason of this
// run. A rule that fails by itself changes nothing, here as on a server.
func unknown(c *engine.Change) bool {
	return slices.ContainsFunc(c.Steps, func(s engine.Step) bool {
		return s.Outcome == engine.Unsupported || s.Outcome == engine.Failed && ofThisRun(s.Err)
	})
}

// ofThisRun reports whether the server would not have the error.
func ofThisRun(err error) bool {
	var unreadable *engine.UnreadableError
	var unanswered *engine.UnansweredError
	var user *engine.UnknownUserError
	return engine.OfThisProgram(err) || errors.As(err, &unreadable) || errors.As(err, &unanswered) ||
		errors.As(err, &user)
}

// addFields adds the fields that differ to a server.
func (c *Comparison) addFields(ctx context.Context, r *Result) {
	sides := r.Changes
	states := [2]*unstructured.Unstructured{sides[Old].After, sides[New].After}
	if states[Old] == states[New] {
		return
	}
	var contents [2]map[string]any
	for i, state := range states {
		if state != nil {
			contents[i] = state.Object
		}
	}
	for _, f := range diff.Compare(contents[Old], contents[New],
		diff.TypeOf(ctx, c.world.ReadsExisting(), sides[Old].Subject.GroupVersionKind())) {
		if dropped(sides[Old].Subject, f.Path) {
			continue
		}
		if f.Kind == engine.Moved &&
			!(inList(f.Path, "env") && !slices.Equal(references(contents[Old]), references(contents[New]))) {
			// init containers start in list order
			r.Alike, r.Reordered = append(r.Alike, f), r.Reordered || inList(f.Path, "initContainers")
			continue
		}
		r.Fields = append(r.Fields, Field{
			FieldChange: f,
			Rules:       [2]engine.RuleRef{writerOf(sides[Old], f.Path), writerOf(sides[New], f.Path)},
		})
	}
}

// dropped reports whether a server ignores the field in a request to the subresource.
func dropped(subject engine.ObjectKey, p fieldpath.Path) bool {
	containers := fieldpath.MakePathOrDie("spec", "ephemeralContainers")
	return subject.Subresource == "ephemeralcontainers" &&
		(len(p) < len(containers) || !p[:len(containers)].Equals(containers))
}

// inList reports whether a path leads to an element of the named list.
func inList(p fieldpath.Path, name string) bool {
	return len(p) > 1 && p[len(p)-2].FieldName != nil && *p[len(p)-2].FieldName == name
}

var reference = regexp.MustCompile(`\$\(([^)]+)\)`)

// references lists the references of environment variables to preceding ones. The kubelet leaves other
// references as they are.
func references(v any) []string {
	var out []string
	switch v := v.(type) {
	case map[string]any:
		env, _ := v["env"].([]any)
		before := map[any]bool{}
		for _, item := range env {
			fields, _ := item.(map[string]any)
			value, _ := fields["value"].(string)
			for _, m := range reference.FindAllStringSubmatch(value, -1) {
				if before[m[1]] {
					out = append(out, fmt.Sprint(v["name"], fields["name"], m[1]))
				}
			}
			before[fields["name"]] = true
		}
		for _, below := range v {
			out = append(out, references(below)...)
		}
	case []any:
		for _, below := range v {
			out = append(out, references(below)...)
		}
	}
	slices.Sort(out)
	return out
}

// writerOf returns the rule that last wrote a field, its parent, or a part of it.
func writerOf(c *engine.Change, p fieldpath.Path) (rule engine.RuleRef) {
	for i := range c.Fields {
		own := c.Fields[i].Path
		if n := min(len(own), len(p)); own[:n].Equals(p[:n]) {
			rule = c.Fields[i].Rule()
		}
	}
	return rule
}
