package report

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Object is what a run found about one object, or did to it. All of its texts are
// masked and escaped: each is one line in which nothing acts on what reads it.
type Object struct {
	Key engine.ObjectKey // not masked
	// ID identifies the object from run to run. It is not for output: it is as it came.
	ID string
	// Name is the object's: "apps/Deployment shop/web".
	Name     string
	Findings []Finding
}

func newObject(k engine.ObjectKey) Object {
	id, uid := k.String(), string(k.UID)
	escape(&k.Group, &k.Version, &k.Kind, &k.Subresource, &k.Namespace, &k.Name, &k.Cluster, &uid)
	k.UID = types.UID(uid)
	return Object{ID: id, Key: k, Name: k.String()}
}

func escapedRule(r engine.RuleRef) engine.RuleRef {
	escape(&r.Dialect, &r.Policy, &r.Rule, &r.Via, &r.Origin)
	return r
}

func escapedSummary(s evaluation.Summary) evaluation.Summary {
	s.Rules = slices.Clone(s.Rules)
	for i := range s.Rules {
		s.Rules[i].Rule = escapedRule(s.Rules[i].Rule)
	}
	return s
}

// Describe returns an object with a finding of each rule that matched it, in the order
// in which the rules ran first.
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
		at := d.of(records[i].Rule)
		d.findings[at].paths = append(d.findings[at].paths, records[i].Path)
		add(&d.findings[at].Notes, "noted in the annotation "+engine.AppliedPatches)
	}
	d.judge()
	for i := range c.Impacts {
		d.impact(&c.Impacts[i])
	}
	out := newObject(c.Subject)
	out.Findings = d.findings
	return out
}

// describer collects the findings of one object.
type describer struct {
	change   *engine.Change
	places   map[engine.RuleRef]int
	findings []Finding
}

// of is the place of a rule's finding.
func (d *describer) of(r engine.RuleRef) int {
	at, ok := d.places[r]
	if !ok {
		at = len(d.findings)
		d.places[r] = at
		escaped := escapedRule(r)
		d.findings = append(d.findings, Finding{Rule: escaped, Name: wording.Rule(escaped), Place: PlaceOf(r.Origin)})
	}
	return at
}

func (d *describer) step(s *engine.Step) {
	if s.Outcome == engine.NotMatched {
		return
	}
	at := d.of(s.Rule)
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
	if s.Trigger != (engine.ObjectKey{}) {
		add(&f.Notes, "triggered by "+escaped(wording.Trigger(s)))
	}
	for _, w := range s.Warnings {
		add(&f.Warnings, escaped(string(w)))
	}
}

// textsHeld bounds the reasons, notes and warnings of a finding: a rule may act on
// one object for thousands of triggers.
const textsHeld = 20

// add appends a text that is not there yet.
func add(texts *[]string, text string) {
	if len(*texts) < textsHeld && !slices.Contains(*texts, text) {
		*texts = append(*texts, text)
	}
}

func (d *describer) field(f *engine.FieldChange) {
	finding := &d.findings[d.of(f.Rule)]
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
		f.Outcome = string(outcome)
		f.Message = f.message()
	}
}

// severity lists outcomes: of a rule that had several, the first of them counts.
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

// impact adds a warning to the findings that it is about.
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

// escape makes one line of each text, in which nothing acts on what reads it. All texts of a
// report go through it; what is left to a format is its syntax.
func escape(texts ...*string) {
	for _, s := range texts {
		*s = redact.EscapeLine(*s)
	}
}

// escaped is a text that escape has made one line.
func escaped(text string) string { return redact.EscapeLine(text) }
