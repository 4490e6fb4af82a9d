package human

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/structured"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Summary prints a line for each object, and for objects that change alike. If there are more different
// changes than a screen shows, it prints the most frequent ones by field instead.
type Summary struct{ base }

// NewSummary returns a printer of a line for each object.
func NewSummary(o output.Options) *Summary {
	p := &Summary{base: newBase(o)}
	p.overview, p.byShape, p.valued = newOverview(o), !o.ListAll && !o.Explain, o.Values
	return p
}

// Print shows how many fields of an object would differ, by which rules, and the summary.
func (p *Summary) Print(s output.Shown) error { return p.event(s, p.print) }

func (p *Summary) print(c *part) error {
	if p.overview.takesOver() && marker(&c.Change) != failure {
		return nil // it is counted, but not listed
	}
	notes := p.page()
	p.lines(notes, c)
	several := p.several(notes, c, p.lines)
	text := shown{marker: marker(&c.Change), body: notes.Bytes(), several: several.Bytes()}
	if c.Changed() {
		text.note = "  " + fieldsOf(&c.Change)
		text.notes = text.note + " each"
	}
	var behind string
	rules := changers(&c.Change)
	if names := strings.Join(rules, ", "); p.byShape && len(names) > cellChanges {
		behind = "  " + fitting(", ", len(rules), func(i int) string { return cutMiddle(rules[i], cellRule) })
	} else if names != "" {
		behind = "  " + names
	}
	if others := c.byOthers(); others != "" {
		behind += "  (" + others + ")"
	}
	text.note += behind
	text.notes += behind
	return p.show(c, append([]byte(text.note+"\n"), several.Bytes()...),
		func() (shown, error) { return text, nil })
}

// lines writes failures and warnings, each warning of rules that changed the object once; with Explain,
// every rule.
func (p *Summary) lines(b *page, c *part) {
	if p.Explain {
		p.trace(b, &c.Change)
		return
	}
	var warned []engine.Warning
	noted := p.noted(&c.Change)
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Outcome == engine.Changed {
			fresh := slices.DeleteFunc(slices.Clone(s.Warnings),
				func(w engine.Warning) bool { return slices.Contains(warned, w) })
			p.warnings(b, fresh)
			warned = append(warned, fresh...)
		} else if noted[s] > 0 {
			p.step(b, s, noted[s])
		}
	}
}

// changers returns the rules that changed the object, each once, with what a reader must know about them.
func changers(c *engine.Change) []string {
	var out []string
	seen := map[engine.RuleRef]bool{}
	for _, s := range c.Steps {
		if s.Outcome != engine.Changed || seen[s.Rule] {
			continue
		}
		seen[s.Rule] = true
		text := s.Rule.String()
		if s.AsCreated {
			text += " (as if created)"
		}
		if s.NotIdempotent != "" {
			text += " (not idempotent)"
		}
		out = append(out, text)
	}
	return out
}

// The limits of an overview, which fits on a screen.
const (
	crowd          = 24 // different changes that are listed one by one
	changesListed  = 5
	failuresListed = 10 // different ones, with their objects
	rulesListed    = 20
	lineListed     = 87 // bytes of a reason, after its count
)

// overview replaces the list of changes if there are more different ones than a screen shows.
type overview struct {
	crowded bool // it replaces the list
	failed  int  // different failures that are listed
	partly  bool // a rule failed on an object that changed, which is not listed
}

// newOverview returns nil if the options ask for each change.
func newOverview(o output.Options) *overview {
	if o.GroupBy != output.ByPatch || o.ListAll || o.Explain {
		return nil
	}
	return &overview{}
}

// takesOver reports whether there are too many different changes to list them.
func (v *overview) takesOver() bool { return v != nil && v.crowded }

// element finds the elements of lists in a path.
var element = regexp.MustCompile(`\[\d+\]`)

// reason returns the reason why a rule was skipped as the overview counts it: all elements of a list as one.
func (v *overview) reason(text string) string {
	const condition = "condition on "
	before, after, found := strings.Cut(text, condition)
	if v == nil || !found {
		return text
	}
	return before + condition + element.ReplaceAllString(after, "[*]")
}

// remark returns an impact as the overview counts it, without the fields, which differ from object to
// object; empty if another line says it.
func (v *overview) remark(m *engine.Impact, kind string) string {
	switch {
	case v == nil:
	case m.Code == engine.ImpactRollout:
		return ""
	case m.Code == engine.ImpactImmutable:
		return "immutable: the server will refuse them: fields that may not change on a " + kind
	}
	return string(m.Code) + ": " + m.Alike()
}

// shortReason shortens a reason for a list. A warning begins with its result, and a failure ends with its
// cause.
func (v *overview) shortReason(text string, failed bool) string {
	if failed {
		return cutMiddle(text, lineListed)
	}
	return engine.Shorten(text, lineListed)
}

// leavesOut reports whether a group is left out because there are too many.
func (v *overview) leavesOut(marker string) bool {
	if !v.crowded {
		return false
	}
	if marker == failure {
		v.failed++
	}
	return marker != failure || v.failed > failuresListed
}

// hint says how to see what is not listed.
func (v *overview) hint() string {
	text := "To see each change: -o diff, or --list-all"
	if n := v.failed - failuresListed; n > 0 {
		text += "; " + wording.Plural(n, "failure") + " of other objects among them"
	}
	return text
}

// Table prints a row for each object, in kubectl's layout.
type Table struct {
	base
	rows *structured.Rows
}

// NewTable returns a printer of rows.
func NewTable(o output.Options) *Table {
	return &Table{base: newBase(o), rows: structured.NewRows(o.Out)}
}

// NewWideTable returns a printer of rows with fields, values and reasons.
func NewWideTable(o output.Options) *Table {
	p := NewTable(o)
	p.wide = true
	return p
}

// The limits of the cells of a row.
const (
	cellChanges = 100 // columns; the first change is listed in any case
	cellPath    = 60
	cellRule    = 60
	cellValue   = 40
)

// Print shows the row of an object that would change or needs a remark, and the summary.
func (p *Table) Print(s output.Shown) error {
	switch e := s.Event().(type) {
	case output.Fleet:
		return p.fleet(e)
	case output.Evaluated:
		return p.row(e.Change)
	case output.Summary:
		if err := p.Flush(); err != nil {
			return err
		}
		return p.summarize(e.Summary)
	}
	return nil
}

// Flush implements output.Flusher.
func (p *Table) Flush() error { return p.rows.Flush() }

func (p *Table) row(c *engine.Change) error {
	p.begin(c)
	if !output.Listed(c, p.Explain) {
		return nil
	}
	if !p.printed {
		if err := p.headers(c.Subject.Cluster != ""); err != nil {
			return err
		}
	}
	counted, _ := engine.SplitRecords(c.Fields)
	texts := []string{
		c.Subject.Namespace, wording.ResourceName(c.Subject), result(c), fmt.Sprint(len(counted)),
		p.changedBy(c),
	}
	if p.wide {
		changes := fitting("; ", len(c.Fields), func(i int) string { return p.change(&c.Fields[i]) })
		texts = append(texts, changes, strings.Join(p.remarks(c), "; "))
	}
	if c.Subject.Cluster != "" {
		texts = append([]string{c.Subject.Cluster}, texts...)
	}
	p.printed = true
	return p.rows.Add(escapedCells(texts, "<none>")...)
}

func (p *Table) headers(clusters bool) error {
	headers := "NAMESPACE\tNAME\tRESULT\tFIELDS\tCHANGED BY"
	if p.wide {
		headers += "\tCHANGES\tREMARKS"
	}
	if clusters {
		headers = "CLUSTER\t" + headers
	}
	return p.rows.Add(headers)
}

// result returns the meaning of a marker as a word.
func result(c *engine.Change) string {
	switch marker(c) {
	case "+":
		return "new"
	case "~":
		if c.Incomplete() {
			return "changed, incomplete"
		}
		return "changed"
	case "!":
		return "incomplete"
	}
	return "unchanged"
}

// changedBy returns the rules that changed an object; a wide table has all of them in full.
func (p *Table) changedBy(c *engine.Change) string {
	rules := changers(c)
	if p.wide {
		return strings.Join(rules, ", ")
	}
	return fitting(", ", len(rules), func(i int) string { return cutMiddle(rules[i], cellRule) })
}

// fitting joins as many strings as fit into a cell: a wide cell would widen all rows.
func fitting(separator string, n int, text func(int) string) string {
	var cell string
	for i := range n {
		switch next := text(i); {
		case i == 0:
			cell = next
		case len(cell)+len(separator)+len(next) <= cellChanges:
			cell += separator + next
		default:
			return fmt.Sprintf("%s%sand %d more", cell, separator, n-i)
		}
	}
	return cell
}

// change returns a field with its values, shortened.
func (p *Table) change(f *engine.FieldChange) string {
	path := p.path(*f)
	if len(path) > cellPath { // its end says more
		path = "..." + strings.ToValidUTF8(path[len(path)-cellPath:], "")
	}
	switch f.Kind {
	case engine.Added:
		return "+" + path + "=" + shortValue(f.To)
	case engine.Removed:
		return "-" + path
	case engine.Moved:
		return ">" + path
	}
	return path + ": " + shortValue(f.From) + " -> " + shortValue(f.To)
}

// shortValue returns a value as shortened JSON.
func shortValue(v any) string {
	text, err := structured.MarshalLine(v)
	if err != nil {
		return "?"
	}
	return engine.Shorten(strings.TrimSuffix(text, "\n"), cellValue)
}

// remarks returns the notes and warnings of a change.
func (p *Table) remarks(c *engine.Change) []string {
	var out []string
	noted := p.noted(c)
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Outcome != engine.Changed && noted[s] == 0 {
			continue
		}
		if s.Outcome != engine.Changed {
			out = append(out, wording.Rule(s.Rule)+" "+p.outcome(s))
		}
		if s.Outcome == engine.Changed {
			for _, label := range p.labels(s) {
				out = append(out, s.Rule.String()+" "+label)
			}
		}
		for _, w := range s.Warnings {
			out = append(out, string(w))
		}
	}
	for i := range c.Impacts {
		out = append(out, string(c.Impacts[i].Code)+": "+c.Impacts[i].Text)
	}
	return out
}
