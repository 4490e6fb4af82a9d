package html

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/human"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// level says how much attention a change needs.
type level string

const (
	failed level = "failed" // its whole effect is not known, or admission refuses it
	warned level = "warned" // it comes with a warning
	plain  level = "plain"
)

func levelOf(c *engine.Change) level {
	switch {
	case c.Incomplete():
		return failed
	case len(c.Impacts) > 0,
		slices.ContainsFunc(c.Steps, func(s engine.Step) bool { return len(s.Warnings) > 0 }):
		return warned
	}
	return plain
}

// change is what happens to an object, and to all those that change alike. Its texts
// are masked and escaped.
type change struct {
	ID    int    `json:"id"`
	Level level  `json:"level"`
	Kind  string `json:"kind"` // "apps/Deployment"
	// Verb says what happens in a word: "change", "create", "none".
	Verb   string `json:"verb"`
	Fields int    `json:"fields"`
	Brief  string `json:"brief,omitempty"` // what does what, on a line
	Rules  []rule `json:"rules"`
	// Warnings are about the first object, Alike about all of them.
	Warnings []warning `json:"warnings,omitempty"`
	Alike    []warning `json:"alike,omitempty"`

	// Of a comparison: what the sides do not make alike, and of a variant what it stands for, and as a manifest.
	Verdict  string `json:"-"`
	Variant  string `json:"-"`
	Manifest string `json:"-"`

	diff string // of the first object

	count, pods int
	first       []member
	namespaces  map[string]bool
}

// rule is what one rule does.
type rule struct {
	Name     string         `json:"name"`
	Policy   string         `json:"policy"`
	Origin   string         `json:"origin,omitempty"`
	Outcome  string         `json:"outcome"`
	Broken   bool           `json:"broken,omitempty"`
	Fields   []report.Field `json:"fields,omitempty"`
	More     int            `json:"more,omitempty"` // fields beyond these
	Reasons  []string       `json:"reasons,omitempty"`
	Notes    []string       `json:"notes,omitempty"`
	Warnings []string       `json:"warnings,omitempty"`
}

type warning struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// member is an object of a change.
type member struct {
	Namespace, Name string // on one cluster of several, the namespace stands behind its name
	Pods            int    // that would restart
}

func memberOf(c *engine.Change) member {
	m := member{Namespace: line(c.Subject.Namespace, nameLength), Name: line(c.Subject.Name, nameLength)}
	if c.Subject.Cluster != "" {
		m.Namespace = line(c.Subject.Cluster+"/"+c.Subject.Namespace, nameLength)
	}
	for i := range c.Impacts {
		m.Pods += c.Impacts[i].Pods
	}
	return m
}

// describe says what happens to an object, but for its diff.
func (p *Printer) describe(c *engine.Change, findings []report.Finding) *change {
	counted, _ := engine.SplitRecords(c.Fields)
	out := &change{
		Level: levelOf(c), Kind: line(wording.Kind(c.Subject), nameLength),
		Verb: verb(c), Fields: len(counted), Rules: []rule{}, namespaces: map[string]bool{},
	}
	for i := range findings {
		if f := &findings[i]; p.options.Explain || worthALine(f) {
			out.Rules = append(out.Rules, ruleOf(f, c.Subject))
		}
	}
	out.Brief = whatByWhom(out.Rules)
	for _, impact := range c.Impacts {
		out.Warnings = append(out.Warnings, p.warning(impact.Code, impact.Text, impact.Advice))
		if impact.Pods == 0 { // else they are added up
			out.Alike = append(out.Alike, p.warning(impact.Code, impact.Alike(), impact.Advice))
		}
	}
	return out
}

func (p *Printer) warning(code engine.ImpactCode, text, advice string) warning {
	if advice != "" {
		text += "; " + advice
	}
	return warning{Code: line(string(code), nameLength), Text: line(text, textLength)}
}

// worthALine reports whether a rule is shown when not everything is explained.
func worthALine(f *report.Finding) bool {
	return f.Changed > 0 || f.Verdict == report.Error || f.Outcome == string(engine.Changed) || len(f.Warnings) > 0
}

// ruleOf is what a rule does to all objects that change alike, so that it does not name the first of them.
func ruleOf(f *report.Finding, subject engine.ObjectKey) rule {
	out := rule{
		Name: report.Cut(f.Name, nameLength), Policy: policyName(f.Rule), Origin: report.Cut(f.Rule.Origin, nameLength),
		Outcome: f.Outcome, Broken: f.Verdict == report.Error, More: f.Changed - len(f.Fields),
		Reasons: cutAll(f.Reasons, subject), Notes: cutAll(f.Notes, subject), Warnings: cutAll(f.Warnings, subject),
	}
	for _, field := range f.Fields {
		field.Path = report.Cut(field.Path, textLength)
		out.Fields = append(out.Fields, field)
	}
	return out
}

// briefRules bounds the line that says what does what.
const briefRules = 2

// whatByWhom is "kyverno team-labels/add: metadata.labels.team and 2 more".
func whatByWhom(rules []rule) string {
	var parts []string
	for _, r := range rules {
		if len(r.Fields) == 0 && !r.Broken {
			continue
		}
		if len(parts) == briefRules {
			parts = append(parts, "...")
			break
		}
		text := report.Cut(r.Name, briefLength)
		switch {
		case r.Broken:
			text += ": " + r.Outcome
		case len(r.Fields)+r.More > 1:
			text += fmt.Sprintf(": %s and %d more", report.Cut(r.Fields[0].Path, briefLength), len(r.Fields)+r.More-1)
		default:
			text += ": " + report.Cut(r.Fields[0].Path, briefLength)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// policyName names a policy in the charts and the filter.
func policyName(r engine.RuleRef) string {
	return line(wording.Policy(r), nameLength)
}

func verb(c *engine.Change) string {
	switch {
	case !c.Changed():
		return "none"
	case c.Before == nil:
		return "create"
	}
	return "change"
}

// join adds an object, for the page without scripts.
func (c *change) join(m member) {
	c.count++
	c.pods += m.Pods
	c.namespaces[m.Namespace] = true
	if len(c.first) < membersListed {
		c.first = append(c.first, m)
	}
}

// The bounds of texts, in bytes. What is longer is cut, and says so.
const (
	briefLength = 150
	nameLength  = 600
	textLength  = 2_000
	diffLength  = 256 << 10
)

func cutAll(texts []string, subject engine.ObjectKey) []string {
	out := slices.Clone(texts)
	for i := range out {
		out[i] = report.Cut(wording.WithoutName(out[i], subject), textLength)
	}
	return out
}

// line is a text that comes from outside, escaped and cut.
func line(s string, length int) string { return report.Cut(redact.EscapeLine(s), length) }

// diffText is a diff without the two lines that name its sides.
func diffText(unified string) string {
	for range 2 {
		_, unified, _ = strings.Cut(unified, "\n")
	}
	return cutLines(unified, diffLength)
}

// cutLines shortens a text at the end of a line.
func cutLines(s string, length int) string {
	if len(s) <= length {
		return s
	}
	end := strings.LastIndexByte(s[:length], '\n') + 1
	return s[:end] + fmt.Sprintf("... %d more bytes of this diff are left out\n", len(s)-end)
}

// overview counts objects for the charts.
type overview struct {
	policies, namespaces counts
	skipped              human.Counter
}

// counts are those of a chart, by name.
type counts map[string]*bar

// bar is a row of a chart.
type bar struct {
	Name    string // by which the script filters
	Changed int    // objects that would change
	Broken  int    // objects of which not everything is known, or that would be refused
	Width   int    // of Changed, out of 100
	Begin   int    // of Broken, which lies over Changed where objects are both
	Hollow  int    // of Broken
	both    int
}

// objects counts those of the bar, each once.
func (b *bar) objects() int { return b.Changed + b.Broken - b.both }

func (c counts) of(name string) *bar {
	if c[name] == nil {
		c[name] = &bar{Name: name}
	}
	return c[name]
}

// clusterScoped stands in the chart for the objects that have no namespace.
const clusterScoped = "(cluster-scoped)"

func (o *overview) add(c *engine.Change, findings []report.Finding) {
	for _, s := range c.HeldBack() {
		if s.Err != nil {
			o.skipped.Add(wording.Brief(s.Err))
		}
	}
	if c.Changed() || c.Incomplete() {
		o.namespaces.add(cmp.Or(memberOf(c).Namespace, clusterScoped), c.Changed(), c.Incomplete())
	}
	type outcome struct{ changed, broken bool }
	policies := map[string]outcome{}
	for _, f := range findings {
		name := policyName(f.Rule)
		was := policies[name]
		policies[name] = outcome{changed: was.changed || f.Changed > 0, broken: was.broken || f.Verdict == report.Error}
	}
	for name, came := range policies { // sums, in whatever order
		o.policies.add(name, came.changed, came.broken)
	}
}

func (c counts) add(name string, changed, broken bool) {
	at := c.of(name)
	if changed {
		at.Changed++
	}
	if broken {
		at.Broken++
	}
	if changed && broken {
		at.both++
	}
}

// barsShown bounds a chart; the filters know all names.
const barsShown = 12

// chart is what the page shows of counts.
type chart struct {
	Title, Head, Filter string
	Bars                []*bar
	Broken              bool // there is a bar with a hollow part
	Rest                int  // names that are left out
	All                 []string
}

// chartOf draws those with most objects first.
func (c counts) chartOf(title, head, filter string) chart {
	out := chart{Title: title, Head: head, Filter: filter}
	for _, b := range c {
		out.Bars = append(out.Bars, b)
		out.All = append(out.All, b.Name)
	}
	slices.Sort(out.All)
	slices.SortFunc(out.Bars, func(a, b *bar) int {
		return cmp.Or(cmp.Compare(b.objects(), a.objects()), cmp.Compare(a.Name, b.Name))
	})
	if rest := len(out.Bars) - barsShown; rest > 0 {
		out.Bars, out.Rest = out.Bars[:barsShown], rest
	}
	most := 1
	for _, b := range out.Bars {
		most = max(most, b.objects())
	}
	for _, b := range out.Bars {
		b.Width, b.Begin, b.Hollow = share(b.Changed, most), share(b.Changed-b.both, most), share(b.Broken, most)
		out.Broken = out.Broken || b.Broken > 0
	}
	return out
}

// share is n out of most as a percentage that is not 0 where n is not.
func share(n, most int) int {
	if n == 0 {
		return 0
	}
	return max(1, n*100/most)
}
