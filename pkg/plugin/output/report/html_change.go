package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/human"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// level says how much attention a change needs.
type level string

const (
	failed level = "failed" // its effect is not known completely, or admission refuses it
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

// change is the change of all objects of a shape, with the first of them as the example. Its strings are
// masked and escaped.
type change struct {
	ID     int    `json:"id"`
	Level  level  `json:"level"`
	Kind   string `json:"kind"`          // "apps/Deployment"
	New    bool   `json:"new,omitempty"` // the object does not exist yet
	Fields int    `json:"fields"`
	Brief  string `json:"brief,omitempty"` // the rules and fields, on a line
	Tags   []tag  `json:"tags,omitempty"`
	Rules  []rule `json:"rules"`
	// Warnings are about the first object, Alike about all of them.
	Warnings []warning `json:"warnings,omitempty"`
	Alike    []warning `json:"alike,omitempty"`

	// In a comparison: the verdict, and the description and manifest of a variant.
	Verdict  string `json:"-"`
	Variant  string `json:"-"`
	Manifest string `json:"-"`

	diff string // of the first object

	count, pods int
	first       []member
	namespaces  map[string]bool
	values      values
}

// field is a field of the example, with the number of values that the objects have, if several.
type field struct {
	Field
	Values int `json:"values,omitempty"`
}

var listElement = regexp.MustCompile(`\[[^"\]][^\]]*\]`)

// pattern replaces the elements of lists in paths, so that the same fields of several elements are equal.
func pattern(text string) string { return listElement.ReplaceAllString(text, "[*]") }

// shape is equal for objects of a kind in which the same rules change the same fields, whatever the values.
func (c *change) shape() (string, error) {
	like := change{Level: c.Level, Kind: c.Kind, New: c.New, Alike: c.Alike}
	for _, r := range c.Rules {
		fields := r.Fields
		r.Fields = nil
		for _, f := range fields {
			f.Path, f.From, f.To = pattern(f.Path), "", ""
			if !slices.Contains(r.Fields, f) {
				r.Fields = append(r.Fields, f)
			}
		}
		like.Rules = append(like.Rules, r)
	}
	text, err := json.Marshal([]any{like, c.Verdict, c.Variant, c.Manifest})
	return string(text), err
}

// values of a field by rule, kind of change and pattern of the path.
type values map[[3]string]map[string]bool

func (v values) ofField(r *rule, f *field) map[string]bool {
	key := [3]string{r.Name, string(f.Kind), pattern(f.Path)}
	if v[key] == nil {
		v[key] = map[string]bool{}
	}
	return v[key]
}

// rule is the effect of one rule.
type rule struct {
	Name     string   `json:"name"`
	Policy   string   `json:"policy"`
	Origin   string   `json:"origin,omitempty"`
	Outcome  string   `json:"outcome"`
	Broken   bool     `json:"broken,omitempty"`
	Fields   []field  `json:"fields,omitempty"`
	More     int      `json:"more,omitempty"` // fields beyond these
	Reasons  []string `json:"reasons,omitempty"`
	Notes    []string `json:"notes,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

type warning struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// member is an object of a change.
type member struct {
	Namespace, Name string // the namespace with the cluster in front, if there are several
	Pods            int    // that would restart, unless the object is managed
	// where it was read, if a rule failed on it, and fields other than those of the example
	Own []string
}

func memberOf(c *engine.Change, failed bool) member {
	m := member{Namespace: line(c.Subject.Namespace, nameLength), Name: line(c.Subject.Place().Name, nameLength)}
	if c.Subject.Cluster != "" {
		m.Namespace = line(c.Subject.Cluster+"/"+c.Subject.Namespace, nameLength)
	}
	for i := range c.Impacts {
		if !c.Managed() {
			m.Pods += c.Impacts[i].Pods
		}
	}
	if failed && c.Target.Origin != "" {
		m.Own = append(m.Own, "read at "+line(c.Target.Origin, nameLength))
	}
	return m
}

// describe returns the change of an object without its diff.
func (p *HTML) describe(c *engine.Change, findings []Finding) *change {
	counted, _ := engine.SplitRecords(c.Fields)
	out := &change{
		Level: levelOf(c), Kind: line(wording.Kind(c.Subject), nameLength),
		New: c.Changed() && c.Before == nil, Fields: len(counted), Rules: []rule{}, namespaces: map[string]bool{},
		values: values{},
	}
	for i := range findings {
		if f := &findings[i]; p.options.Explain || worthALine(f) {
			out.Rules = append(out.Rules, ruleOf(f, c.Subject))
		}
	}
	for i := range c.Impacts {
		impact := &c.Impacts[i]
		text := impact.Text
		if impact.Advice != "" {
			text += "; " + impact.Advice
		}
		out.Warnings = append(out.Warnings, warningOf(impact, text))
		if impact.Pods == 0 || c.Managed() { // otherwise they are added up
			out.Alike = append(out.Alike, warningOf(impact, alike(cmp.Or(impact.Brief, text), c.Subject)))
		}
	}
	return out
}

// alike returns a warning about an object as it holds for all objects of its shape.
func alike(text string, subject engine.ObjectKey) string {
	return pattern(wording.WithoutName(text, subject))
}

func warningOf(impact *engine.Impact, text string) warning {
	return warning{Code: line(string(impact.Code), nameLength), Text: line(text, textLength)}
}

// worthALine reports whether a rule is shown when not everything is explained.
func worthALine(f *Finding) bool {
	return f.Changed > 0 || f.Verdict == Error || f.Outcome == string(engine.Changed) || len(f.Warnings) > 0
}

// ruleOf returns the effect of a rule on all objects that change alike, without the name of the first.
func ruleOf(f *Finding, subject engine.ObjectKey) rule {
	out := rule{
		Name: Cut(wording.Rule(f.Rule.WithoutParameter()), nameLength), Policy: policyName(f.Rule),
		Origin:  Cut(f.Rule.Origin, nameLength),
		Outcome: f.Outcome, Broken: f.Verdict == Error, More: f.Changed - len(f.Fields),
		Reasons: cutAll(f.Reasons, subject), Notes: cutAll(f.Notes, subject), Warnings: cutAll(f.Warnings, subject),
	}
	for _, of := range f.Fields {
		of.Path = Cut(of.Path, textLength)
		out.Fields = append(out.Fields, field{Field: of})
	}
	return out
}

// briefRules is the maximum number of rules in a brief.
const briefRules = 2

// whatByWhom returns `kyverno team-labels/add: + metadata.labels.team: "blue" and 2 more fields`.
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
		text := Cut(r.Name, briefLength) + ": "
		if r.Broken {
			parts = append(parts, text+r.Outcome)
			continue
		}
		text += engine.Shorten(r.Fields[0].String(), briefLength)
		if n := r.Fields[0].Values; n > 0 {
			text += " and " + wording.PluralNumber(n-1, "other value")
		}
		if more := len(r.Fields) + r.More - 1; more > 0 {
			text += " and " + wording.PluralNumber(more, "more field")
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// policyName returns the name of a policy in the charts and the filter.
func policyName(r engine.RuleRef) string {
	return line(wording.Policy(r), nameLength)
}

// join adds an object with the effects of the rules on it.
func (c *change) join(m member, rules []rule) member {
	c.count++
	c.pods += m.Pods
	c.namespaces[m.Namespace] = true
	for _, r := range rules {
		for _, f := range r.Fields {
			c.values.ofField(&r, &f)[cmp.Or(f.To, f.From)] = true // the new value, or the removed one
			if !slices.ContainsFunc(c.Rules, func(of rule) bool { return slices.Contains(of.Fields, f) }) {
				m.Own = append(m.Own, f.String())
			}
		}
	}
	if len(c.first) < membersListed {
		c.first = append(c.first, m)
	}
	return m
}

// finish completes the change when all objects have joined.
func (c *change) finish() {
	for i := range c.Rules {
		r := &c.Rules[i]
		for j := range r.Fields {
			if n := len(c.values.ofField(r, &r.Fields[j])); n > 1 && c.count > 1 {
				r.Fields[j].Values = n
			}
		}
	}
	c.Tags = tags(c)
	if c.Verdict == "" {
		c.Brief = whatByWhom(c.Rules)
	}
}

// The limits of strings, in bytes. Longer ones are cut, and say so.
const (
	briefLength = 150
	nameLength  = 600
	textLength  = 2_000
	diffLength  = 256 << 10
)

func cutAll(texts []string, subject engine.ObjectKey) []string {
	out := slices.Clone(texts)
	for i := range out {
		out[i] = Cut(wording.WithoutName(out[i], subject), textLength)
	}
	return out
}

// line returns an untrusted string escaped and cut.
func line(s string, length int) string { return Cut(redact.EscapeLine(s), length) }

// diffText returns a diff without the two lines that name its sides.
func diffText(unified string) string {
	for range 2 {
		_, unified, _ = strings.Cut(unified, "\n")
	}
	return cutLines(unified, diffLength)
}

// cutLines shortens a string at the end of a line.
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
	skipped, owners      human.Counter
	fields               human.Varieties
}

// counts has the bars of a chart by name.
type counts map[string]*bar

// bar is a row of a chart.
type bar struct {
	Name    string // by which the script filters
	Changed int    // objects that would change
	Broken  int    // objects that are incomplete or would be refused
}

// clusterScoped names objects without a namespace in the chart.
const clusterScoped = "(cluster-scoped)"

func (o *overview) add(c *engine.Change, findings []Finding) {
	for _, s := range c.HeldBack() {
		if s.Err != nil {
			o.skipped.Add(wording.Brief(s.Err))
		}
	}
	for i := range c.Impacts {
		if impact := &c.Impacts[i]; impact.Owner != "" {
			text := alike(impact.Alike(), c.Subject)
			if impact.Source != "" {
				text = wording.Source(impact.Owner, impact.Source)
			}
			o.owners.Add(line(string(impact.Code)+": "+text, textLength))
		}
	}
	if c.Changed() || c.Incomplete() {
		o.namespaces.add(cmp.Or(memberOf(c, false).Namespace, clusterScoped), c.Changed(), c.Incomplete())
	}
	type outcome struct{ changed, broken bool }
	policies := map[string]outcome{}
	for _, f := range findings {
		name := policyName(f.Rule)
		was := policies[name]
		policies[name] = outcome{changed: was.changed || f.Changed > 0, broken: was.broken || f.Verdict == Error}
	}
	for name, came := range policies { // sums, in any order
		o.policies.add(name, came.changed, came.broken)
	}
}

func (c counts) add(name string, changed, broken bool) {
	at := c[name]
	if at == nil {
		at = &bar{Name: name}
		c[name] = at
	}
	if changed {
		at.Changed++
	}
	if broken {
		at.Broken++
	}
}

// barsShown is the maximum number of bars; the filters know all names.
const barsShown = 12

// chart is the data of a chart on the page.
type chart struct {
	Title, Head, Filter string
	Bars                []*bar
	Most                int  // the most objects of a bar
	Broken              bool // a bar has a hollow part
	All                 []string
}

// chartOf returns a chart of the bars with the most objects.
func (c counts) chartOf(title, head, filter string) chart {
	out := chart{Title: title, Head: head, Filter: filter, Most: 1}
	for _, b := range c {
		out.Bars = append(out.Bars, b)
		out.All = append(out.All, b.Name)
	}
	slices.Sort(out.All)
	slices.SortFunc(out.Bars, func(a, b *bar) int {
		return cmp.Or(cmp.Compare(b.Changed+b.Broken, a.Changed+a.Broken), cmp.Compare(a.Name, b.Name))
	})
	out.Bars = out.Bars[:min(len(out.Bars), barsShown)]
	for _, b := range out.Bars {
		out.Most, out.Broken = max(out.Most, b.Changed, b.Broken), out.Broken || b.Broken > 0
	}
	return out
}
