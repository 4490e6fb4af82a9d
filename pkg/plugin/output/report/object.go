package report

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Object is what a run found about one object. All of its texts are masked, and
// harmless lines in the sense of harmless.Line.
type Object struct {
	Key engine.ObjectKey // as it is; its names are not masked
	// Name is the object's: "apps/Deployment shop/web".
	Name     string
	Findings []Finding
}

// NameOf is an object's name, as a harmless line.
func NameOf(k engine.ObjectKey) string { return redact.EscapeLine(k.String()) }

// Masker is the one that options ask for: nil where Secrets may be shown.
func Masker(o output.Options) *redact.Masker {
	switch {
	case o.ShowSecrets:
		return nil
	case o.Masker == nil:
		return &redact.Masker{}
	}
	return o.Masker
}

// Describe says what came of each rule that matched an object, in the order in
// which the rules ran first. A nil Masker shows everything.
func Describe(c *engine.Change, m *redact.Masker) Object {
	m.Learn(c.Before)
	m.Learn(c.After)
	d := describer{change: c, masker: m, places: map[engine.RuleRef]int{}}
	for i := range c.Steps {
		d.step(&c.Steps[i])
	}
	for i := range c.Fields {
		d.field(&c.Fields[i])
	}
	d.judge()
	for i := range c.Impacts {
		d.impact(&c.Impacts[i])
	}
	return Object{Key: c.Subject, Name: NameOf(c.Subject), Findings: d.findings}
}

// describer collects the findings of one object.
type describer struct {
	change   *engine.Change
	masker   *redact.Masker
	places   map[engine.RuleRef]int
	findings []Finding
	outcomes [][]engine.Outcome // of the steps, by finding
	paths    [][]fieldpath.Path // of the fields, by finding
}

func (d *describer) text(s string) string { return redact.EscapeLine(d.masker.Text(s)) }

// of is the place of a rule's finding.
func (d *describer) of(r engine.RuleRef) int {
	at, ok := d.places[r]
	if !ok {
		at = len(d.findings)
		d.places[r] = at
		d.findings = append(d.findings, Finding{Rule: r, Name: wording.Rule(r)})
		d.outcomes, d.paths = append(d.outcomes, nil), append(d.paths, nil)
	}
	return at
}

func (d *describer) step(s *engine.Step) {
	if s.Outcome == engine.NotMatched {
		return
	}
	at := d.of(s.Rule)
	f := &d.findings[at]
	d.outcomes[at] = append(d.outcomes[at], s.Outcome)
	if s.Err != nil {
		add(&f.Reasons, d.text(s.Err.Error()))
	}
	if s.AsCreated {
		add(&f.Notes, "as if the object were created now")
	}
	if s.NotIdempotent != "" {
		add(&f.Notes, "not idempotent: "+d.text(s.NotIdempotent))
	}
	if s.Trigger != (engine.ObjectKey{}) {
		add(&f.Notes, "set off by "+d.text(s.Trigger.String()))
	}
	for _, w := range s.Warnings {
		add(&f.Warnings, d.text(string(w)))
	}
}

// textsHeld bounds the reasons, notes and warnings of a finding: a rule may act on
// one object for thousands of triggers.
const textsHeld = 20

// add appends what is not said yet.
func add(texts *[]string, text string) {
	if len(*texts) < textsHeld && !slices.Contains(*texts, text) {
		*texts = append(*texts, text)
	}
}

func (d *describer) field(f *engine.FieldChange) {
	at := d.of(f.Rule)
	d.paths[at] = append(d.paths[at], f.Path)
	finding := &d.findings[at]
	finding.Changed++
	if len(finding.Fields) < fieldsHeld {
		finding.Fields = append(finding.Fields, fieldOf(d.change, f, d.masker))
	}
}

// judge says what the steps of each rule come to.
func (d *describer) judge() {
	for i := range d.findings {
		f, outcome := &d.findings[i], worst(d.outcomes[i])
		switch {
		case outcome.Incomplete():
			f.Verdict = Error
		case f.Changed > 0:
			f.Verdict = Fail
		case outcome == engine.Changed:
			f.Verdict = Pass
			add(&f.Notes, "it wrote, and nothing of that is left: set back or overwritten by what ran after it")
		case outcome == engine.Skipped:
			f.Verdict = Skip
		default:
			f.Verdict = Pass
		}
		f.Outcome = string(outcome)
		f.Message = f.message()
	}
}

// severity are the outcomes of which the first stands for a rule that had several.
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

// impact tells what the change means at the findings that it is about.
func (d *describer) impact(i *engine.Impact) {
	text := string(i.Code) + ": " + d.text(i.Text)
	if i.Advice != "" {
		text += "; " + d.text(i.Advice)
	}
	told := false
	for at := range d.findings {
		if d.concerns(i, at) {
			add(&d.findings[at].Warnings, text)
			told = true
		}
	}
	for at := 0; at < len(d.findings) && !told; at++ {
		if f := &d.findings[at]; f.Outcome == string(engine.Changed) || at == len(d.findings)-1 {
			add(&f.Warnings, text)
			told = true
		}
	}
}

// concerns tells whether an impact is about what a rule changes.
func (d *describer) concerns(i *engine.Impact, at int) bool {
	if d.findings[at].Changed == 0 {
		return false
	}
	return len(i.Fields) == 0 || slices.ContainsFunc(i.Fields, func(p fieldpath.Path) bool {
		return slices.ContainsFunc(d.paths[at], func(own fieldpath.Path) bool { return overlap(p, own) })
	})
}

// overlap tells whether one path is at, above or below the other.
func overlap(a, b fieldpath.Path) bool {
	n := min(len(a), len(b))
	return a[:n].Equals(b[:n])
}
