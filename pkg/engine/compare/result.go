package compare

import (
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

// Verdict is what the comparison of an object comes to.
type Verdict string

// The verdicts, from the best to the worst.
const (
	Same           Verdict = "same"             // the object comes out as the same
	Differs        Verdict = "differs"          // both sides change it, to something else
	OnlyOldChanges Verdict = "only-old-changes" // only the old side changes it
	OnlyNewChanges Verdict = "only-new-changes"
	OnlyOldDenies  Verdict = "only-old-denies" // only on the old side admission refuses it
	OnlyNewDenies  Verdict = "only-new-denies"
	NotComparable  Verdict = "not-comparable" // what a side makes of it is not known
)

// Verdicts lists the verdicts, the worst last.
func Verdicts() []Verdict {
	return []Verdict{Same, Differs, OnlyOldChanges, OnlyNewChanges, OnlyOldDenies, OnlyNewDenies, NotComparable}
}

// Differs reports whether the verdict is that the two sides do not do the same.
func (v Verdict) Differs() bool { return v != Same && v != NotComparable }

func (v Verdict) worse(than Verdict) bool {
	return slices.Index(Verdicts(), v) > slices.Index(Verdicts(), than)
}

// Result is what the comparison of one object found.
type Result struct {
	Subject engine.ObjectKey
	Target  engine.Target
	// Verdict is the worst of those of the operations, and Operations are the requests that have it.
	Verdict    Verdict
	Operations []engine.Operation
	// Everywhere reports whether these are all requests that were compared.
	Everywhere bool
	// Changes are what the sides make of the object in the first of the Operations.
	Changes [2]*engine.Change
	// Fields are those in which the two results differ, in path order. Where the verdict is
	// NotComparable there are none.
	Fields []Field
	// Alike are differences that are none to a server: the places of elements that have keys.
	Alike []engine.FieldChange
	// Reordered reports that one of these is the place of an init container: they start in their order.
	Reordered bool
	// Variant is set for an object that is not there.
	Variant *Variant
	// Failed reports that a rule fails on the object in one of the requests that were compared, and so
	// changes nothing, as it does on a server.
	Failed bool

	lanes []*engine.Change // of all operations, for the Tally
}

// Variant says of a Result that its object is derived from the policies: the smallest that shows what the
// Result says.
type Variant struct {
	Count  int      // of the variants on which the sides differ alike
	Kinds  []string // of these, as in "apps/Deployment"
	Object *unstructured.Unstructured
	// Request says what the request for it is, where that is not what any request is: its user, and whether
	// it is a dry run.
	Request engine.Request
	// Beside are other objects that are there with it: its Namespace where its labels or annotations matter,
	// and what the rules change or read.
	Beside []*unstructured.Unstructured
	// Missing names the objects that the rules ask for, and that are not there.
	Missing []string
}

// Objects are all objects of the variant, the one that it is about last.
func (v *Variant) Objects() []*unstructured.Unstructured {
	return append(slices.Clone(v.Beside), v.Object)
}

// Field is a field that differs: From is what the old side makes of it, To what the new one does.
type Field struct {
	engine.FieldChange
	// Rules are the rules that wrote the field last; zero for a side that left it alone.
	Rules [2]engine.RuleRef
}

// Changed reports whether a side changes the object.
func (r *Result) Changed() bool {
	return slices.ContainsFunc(r.lanes, func(c *engine.Change) bool { return c.Changed() })
}

// Steps calls f with each step of a side, in any of the requests: as it may be shown, or with showSecrets as
// it is.
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

// DependsOnSecret reports whether what a side does may depend on the value of a Secret, or hold one.
func (r *Result) DependsOnSecret() bool {
	return slices.ContainsFunc(r.lanes, func(c *engine.Change) bool { return c.Shown != nil })
}

// Difference returns the result as a change from what the old side makes of the object to what the
// new one makes of it, for printers. Its steps are the ones that failed, were denied or are unsupported.
func (r *Result) Difference() *engine.Change {
	out := difference(r, r.Changes)
	if r.Changes[Old].Shown == nil && r.Changes[New].Shown == nil && !engine.IsSecret(out.Before) {
		return out
	}
	out.Shown = difference(r, [2]*engine.Change{r.Changes[Old].ToShow(), r.Changes[New].ToShow()})
	// of a side that leaves a Secret as it is
	out.Shown.Before, out.Shown.After = engine.HideObject(out.Shown.Before), engine.HideObject(out.Shown.After)
	out.Shown.Target.Object = out.Shown.Before
	if len(out.Fields) > 0 { // a target that is not there has no states
		evaluation.ShowFields(out, out.Shown)
	}
	return out
}

// ToShow returns the result as it may be shown, and its Difference.
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

// once leaves out the fields of which nothing else may be shown than of one before: how many there are says
// which they are.
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
		out.Fields[i].Rule = r.Fields[i].Rules[New]
		if out.Fields[i].Rule == (engine.RuleRef{}) {
			out.Fields[i].Rule = r.Fields[i].Rules[Old]
		}
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

// judge compares what the lanes made of one object. Lanes that did not meet it leave it as it is.
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

// complete fills in lanes that did not meet the object.
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

// failed reports whether a rule fails on an object.
func failed(c *engine.Change) bool {
	return slices.ContainsFunc(c.Steps, func(s engine.Step) bool { return s.Outcome == engine.Failed })
}

// unknown reports whether the result of a side is not known: a rule is not supported, or failed for a reason
// of this run. One that fails of itself changes nothing, on a server as here.
func unknown(c *engine.Change) bool {
	return slices.ContainsFunc(c.Steps, func(s engine.Step) bool {
		return s.Outcome == engine.Unsupported || s.Outcome == engine.Failed && ofThisRun(s.Err)
	})
}

// ofThisRun reports whether an error is one that the server would not have.
func ofThisRun(err error) bool {
	var unreadable *engine.UnreadableError
	var unanswered *engine.UnansweredError
	var user *engine.UnknownUserError
	return engine.OfThisProgram(err) || errors.As(err, &unreadable) || errors.As(err, &unanswered) ||
		errors.As(err, &user)
}

// addFields adds the fields in which the two results differ to a server.
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
			// which are started one after the other
			r.Alike, r.Reordered = append(r.Alike, f), r.Reordered || inList(f.Path, "initContainers")
			continue
		}
		r.Fields = append(r.Fields, Field{
			FieldChange: f,
			Rules:       [2]engine.RuleRef{writerOf(sides[Old], f.Path), writerOf(sides[New], f.Path)},
		})
	}
}

// dropped reports whether a server leaves a field as it was, whatever a request to the subresource has for
// it.
func dropped(subject engine.ObjectKey, p fieldpath.Path) bool {
	containers := fieldpath.MakePathOrDie("spec", "ephemeralContainers")
	return subject.Subresource == "ephemeralcontainers" &&
		(len(p) < len(containers) || !p[:len(containers)].Equals(containers))
}

// inList reports whether a path is that of an element of a list of a name.
func inList(p fieldpath.Path, name string) bool {
	return len(p) > 1 && p[len(p)-2].FieldName != nil && *p[len(p)-2].FieldName == name
}

// reference matches a reference in the value of an environment variable.
var reference = regexp.MustCompile(`\$\(([^)]+)\)`)

// references lists what the environment variables of containers have references to: a variable that stands
// before. The kubelet leaves others as they are.
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

// writerOf is the rule of a change that wrote a field, what holds it, or a part of it, last.
func writerOf(c *engine.Change, p fieldpath.Path) (rule engine.RuleRef) {
	for i := range c.Fields {
		own := c.Fields[i].Path
		if n := min(len(own), len(p)); own[:n].Equals(p[:n]) {
			rule = c.Fields[i].Rule
		}
	}
	return rule
}
