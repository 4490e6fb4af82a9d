package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
)

// Object is what a run found about an object, or did to it. Its strings are masked and escaped, each on one
// line.
type Object struct {
	Key engine.ObjectKey // not masked; for an object to be created, its workload
	// ID identifies the object from run to run. It is not escaped, and not for output.
	ID string
	// Name is the object's: "apps/Deployment shop/web".
	Name string
	// Place of the manifest; empty for an object of a cluster.
	Place    Place
	Findings []Finding
}

func newObject(k engine.ObjectKey) Object {
	id, made := k.String(), k.Of != engine.Maker{}
	k = k.Place()
	uid := string(k.UID)
	escape(&k.Group, &k.Version, &k.Kind, &k.Subresource, &k.Namespace, &k.Name, &k.Cluster, &uid)
	k.UID = types.UID(uid)
	out := Object{ID: id, Key: k, Name: k.String()}
	if made {
		out.Name = escaped(id)
	}
	return out
}

func escapedRule(r engine.RuleRef) engine.RuleRef {
	escape(&r.Dialect, &r.Policy, &r.Rule, &r.Via, &r.Origin)
	return r
}

// Describe returns an object with a finding of each rule that matched it, in the order in which the rules
// first ran.
func Describe(c *engine.Change) Object {
	d := describer{change: c, places: map[engine.RuleRef]int{}}
	for i := range c.Steps {
		d.step(&c.Steps[i])
	}
	counted, records := engine.SplitRecords(c.Fields)
	for i := range counted {
		d.field(&counted[i])
	}
	for i := range records {
		at := d.findingOf(records[i].Rule())
		d.findings[at].paths = append(d.findings[at].paths, records[i].Path)
		add(&d.findings[at].Notes, "noted in the annotation "+engine.AppliedPatches)
	}
	d.judge()
	for i := range c.Impacts {
		d.impact(&c.Impacts[i])
	}
	out := newObject(c.Subject)
	out.Place, out.Findings = PlaceOf(c.Target.Origin), d.findings
	return out
}

// describer collects the findings of one object.
type describer struct {
	change   *engine.Change
	places   map[engine.RuleRef]int
	findings []Finding
}

// findingOf returns the index of a rule's finding.
func (d *describer) findingOf(r engine.RuleRef) int {
	at, ok := d.places[r]
	if !ok {
		at = len(d.findings)
		d.places[r] = at
		escaped := escapedRule(r)
		d.findings = append(d.findings,
			Finding{Rule: escaped, Name: wording.Rule(escaped), Place: PlaceOf(r.Origin)})
	}
	return at
}

func (d *describer) step(s *engine.Step) {
	if s.Outcome == engine.NotMatched {
		return
	}
	at := d.findingOf(s.Rule)
	f := &d.findings[at]
	f.outcomes = append(f.outcomes, s.Outcome)
	if s.Err != nil {
		add(&f.Reasons, escaped(s.Err.Error()))
	}
	if s.AsCreated {
		add(&f.Notes, "as if the object were created now")
	}
	if s.NotIdempotent != "" {
		add(&f.Notes, "not idempotent: "+escaped(s.NotIdempotent))
	}
	if s.TriggeredBy != nil {
		add(&f.Notes, "triggered by "+escaped(wording.Trigger(s)))
	}
	for _, w := range s.Warnings {
		add(&f.Warnings, escaped(string(w)))
	}
}

// textsHeld is the maximum number of reasons, notes and warnings of a finding: a rule may act on one object
// for thousands of triggers.
const textsHeld = 20

// add appends a string unless it is there.
func add(texts *[]string, text string) {
	if len(*texts) < textsHeld && !slices.Contains(*texts, text) {
		*texts = append(*texts, text)
	}
}

func (d *describer) field(f *engine.FieldChange) {
	finding := &d.findings[d.findingOf(f.Rule())]
	finding.paths = append(finding.paths, f.Path)
	finding.Changed++
	if len(finding.Fields) < fieldsHeld {
		finding.Fields = append(finding.Fields, FieldOf(f))
	}
}

// judge sums up the steps of each rule.
func (d *describer) judge() {
	for i := range d.findings {
		f, outcome := &d.findings[i], worst(d.findings[i].outcomes)
		switch {
		case outcome.Incomplete():
			f.Verdict = Error
			if place := d.change.Target.Origin; place != "" {
				add(&f.Notes, "the object was read at "+escaped(place))
			}
		case f.Changed > 0:
			f.Verdict = Fail
		case outcome == engine.Changed:
			f.Verdict = Pass
			add(&f.Notes, "all that it wrote was reverted or overwritten by later rules")
		case outcome == engine.Skipped:
			f.Verdict = Skip
		default:
			f.Verdict = Pass
		}
		if outcome == engine.Changed {
			f.Reasons = nil // why it did nothing in another round, or for another trigger
		}
		f.Outcome = string(outcome)
		f.Message = f.message()
	}
}

// severity lists outcomes, the worst first.
var severity = []engine.Outcome{ //nolint:gochecknoglobals // an immutable table
	engine.Denied, engine.Failed, engine.Unsupported, engine.Changed, engine.Unchanged, engine.Skipped,
}

func worst(outcomes []engine.Outcome) engine.Outcome {
	for _, o := range severity {
		if slices.Contains(outcomes, o) {
			return o
		}
	}
	return engine.Changed // a field of it differs
}

// impact adds a warning to the findings that it concerns.
func (d *describer) impact(i *engine.Impact) {
	text := string(i.Code) + ": " + escaped(i.Text)
	if i.Advice != "" {
		text += "; " + escaped(i.Advice)
	}
	added := false
	for at := range d.findings {
		f := &d.findings[at]
		if f.Changed > 0 && (len(i.Fields) == 0 || slices.ContainsFunc(f.paths, i.Concerns)) {
			add(&f.Warnings, text)
			added = true
		}
	}
	for at := 0; at < len(d.findings) && !added; at++ {
		if f := &d.findings[at]; f.Outcome == string(engine.Changed) || at == len(d.findings)-1 {
			add(&f.Warnings, text)
			added = true
		}
	}
}

// escape makes each string one line in which nothing acts on what reads it. All strings of a report pass
// through it, so that a format cares only for its syntax.
func escape(texts ...*string) {
	for _, s := range texts {
		*s = redact.EscapeLine(*s)
	}
}

// escaped returns a string as escape makes it.
func escaped(text string) string { return redact.EscapeLine(text) }

// DescribeWritten returns the outcome of an object that was to be written as a finding of each rule that
// makes the change.
func DescribeWritten(w output.Written) Object {
	came := Finding{Verdict: verdictOf(w), Outcome: string(w.Outcome), Message: escaped(w.Sentence())}
	if w.Err == nil && w.Status != nil && w.Status.Err != nil {
		came.Outcome = string(w.Status.Outcome)
	}
	if came.Verdict == Pass {
		add(&came.Notes, came.Message)
	}
	if w.Err == nil { // otherwise the error says it all
		for _, n := range w.Notes() {
			add(&came.Warnings, escaped(n))
		}
	}
	came.written(w.Result)
	rules := w.Rules
	if len(rules) == 0 { // an object that a resumed run does not meet any more
		rules = []engine.RuleRef{{Dialect: "unknown", Policy: "policy"}}
	}
	out := newObject(w.Key)
	for _, rule := range rules {
		came.Rule = escapedRule(rule)
		came.Name, came.Place = wording.Rule(came.Rule), PlaceOf(rule.Origin)
		out.Findings = append(out.Findings, came)
	}
	return out
}

// verdictOf judges an outcome. An object that is left to its manager, or to a client that changed or deleted
// it, is not an error of the run.
func verdictOf(w output.Written) Verdict {
	if w.Status != nil && w.Status.Err != nil {
		return Error
	}
	switch w.Outcome {
	case write.Applied, write.Planned, write.Unchanged:
		return Pass
	case write.Declined, write.Drifted, write.Managed, write.Ignored, write.Deleted, write.Replaced,
		write.Terminating:
		return Skip
	case write.Failed, write.Conflicted, write.ServerKeepsValue, write.NotTried:
	}
	return Error
}

// written adds the fields that were, or would be, written to the object and to its /status.
func (f *Finding) written(r *write.Result) {
	for _, part := range []*write.Result{r, r.Status} {
		if part == nil || part.Outcome != write.Applied && part.Outcome != write.Planned {
			continue
		}
		c := part.Touched.Change(part.Key)
		f.Changed += len(c.Fields)
		for i := range min(len(c.Fields), fieldsHeld-len(f.Fields)) {
			f.Fields = append(f.Fields, FieldOf(&c.Fields[i]))
		}
	}
}

// DescribeCompared returns the comparison of an object: a finding of each rule of the new side that acts on
// it, or of the old side if no new rule does. It fails for a variant that cannot be written.
func DescribeCompared(e output.Compared) (Object, error) {
	d := describer{change: e.Difference, places: map[engine.RuleRef]int{}}
	for _, side := range []compare.Side{compare.New, compare.Old} {
		for _, s := range e.Changes[side].Steps {
			if s.Outcome != engine.NotMatched && (side == compare.New || s.Outcome.Incomplete()) {
				d.findingOf(s.Rule)
			}
			if s.Outcome.Incomplete() && s.Err != nil {
				add(&d.findings[d.findingOf(s.Rule)].Reasons, side.String()+": "+escaped(s.Err.Error()))
			}
		}
	}
	for i := range e.Difference.Fields {
		d.field(&e.Difference.Fields[i])
		rules := e.Fields[i].Rules
		at := d.findingOf(e.Difference.Fields[i].Rule())
		if other := rules[compare.Old]; other != (engine.RuleRef{}) && other != e.Difference.Fields[i].Rule() {
			add(&d.findings[at].Notes, "the old rule is "+escaped(wording.Rule(other)))
		}
	}
	for i := range d.findings {
		d.compared(&d.findings[i], e.Verdict)
	}
	out := newObject(e.Subject)
	out.Findings = d.findings
	if e.Variant == nil {
		return out, nil
	}
	out.Name += " (variant)"
	manifest, err := output.Manifests(e.Variant.Objects())
	if err != nil {
		return out, err
	}
	for i := range out.Findings {
		f := &out.Findings[i]
		if f.Verdict == Pass {
			continue
		}
		f.Notes = append(f.Notes, "shown by "+
			escaped(wording.PluralNumber(e.Variant.Count, "variant")+" ("+engine.Few(e.Variant.Kinds)+")")+
			"; the smallest object that shows it"+escaped(wording.Requested(e.Variant))+":")
		for line := range strings.Lines(manifest) {
			f.Lines = append(f.Lines, redact.EscapeLine(strings.TrimSuffix(line, "\n")))
		}
	}
	return out, nil
}

// reasons returns the reasons of all rules: the effect of one may concern all others.
func (d *describer) reasons() string {
	var all []string
	for i := range d.findings {
		for _, reason := range d.findings[i].Reasons {
			add(&all, reason)
		}
	}
	return strings.Join(all, "; ")
}

// DescribeExercise returns how a rule of a side was exercised, as the only finding of the side.
func DescribeExercise(s compare.Side, e *compare.Exercise) Object {
	rule := escapedRule(e.Rule)
	f := Finding{
		Rule: rule, Name: wording.Rule(rule), Place: PlaceOf(e.Rule.Origin), Verdict: Pass,
		Outcome: "exercised", Message: "the rule was exercised",
	}
	if !e.Exercised() {
		f.Verdict, f.Outcome, f.Message = Skip, "not-exercised", "not exercised: missing is "+escaped(e.Missing)
	}
	counts := fmt.Sprintf("matched %d, held back on %d, changed %d", e.Matched(), e.Outcomes[engine.Skipped], e.Outcomes[engine.Changed])
	if e.Variants > 0 {
		counts += fmt.Sprintf(", and %s", wording.Plural(e.Variants, "variant"))
	}
	f.Notes = []string{counts}
	for _, reason := range e.Reasons() {
		f.Notes = append(f.Notes, fmt.Sprintf("held back on %d: %s", e.HeldBack[reason], escaped(reason)))
	}
	return Object{ID: s.String(), Name: "exercised (" + s.String() + ")", Findings: []Finding{f}}
}

// compared sums up the comparison for one rule.
func (d *describer) compared(f *Finding, v compare.Verdict) {
	f.Verdict, f.Outcome = Pass, string(compare.Same)
	switch {
	case v == compare.NotComparable:
		f.Verdict, f.Outcome = Error, string(v)
	case f.Changed > 0, v == compare.OnlyOldDenies, v == compare.OnlyNewDenies:
		f.Verdict, f.Outcome = Fail, string(v)
	}
	f.Message = "old and new policies do the same to the object"
	switch {
	case f.Verdict == Pass:
	case f.Changed > 0:
		f.Message = f.Outcome + ": " + f.fields("not alike")
	default: // why the result is unknown
		f.Message = f.Outcome + ": " + cmp.Or(strings.Join(f.Reasons, "; "), d.reasons())
	}
	if place := d.change.Target.Origin; place != "" && f.Verdict != Pass && !slices.Contains(f.Notes, place) {
		add(&f.Notes, "the object was read at "+escaped(place))
	}
}
