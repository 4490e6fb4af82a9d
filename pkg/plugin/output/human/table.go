package human

import (
	"fmt"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/structured"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Table prints a row for each object, laid out as kubectl does.
type Table struct {
	base
	rows *structured.Rows
	wide bool
}

// NewTable returns a printer of rows; a wide one adds fields, values and reasons.
func NewTable(o output.Options, wide bool) *Table {
	p := &Table{base: newBase(o), rows: structured.NewRows(o.Out), wide: wide}
	p.whole = wide
	return p
}

// The bounds of what a row holds.
const (
	cellChanges = 100 // columns; the first change is listed in any case
	cellPath    = 60
	cellRule    = 60
	cellValue   = 40
)

// Print shows the row of an object that would change, or that needs a remark, and the
// summary.
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
	counted, _ := engine.CountRecords(c.Fields)
	texts := []string{c.Subject.Namespace, wording.ResourceName(c.Subject), result(c), fmt.Sprint(counted), p.changedBy(c)}
	if p.wide {
		texts = append(texts, p.changes(c), strings.Join(p.remarks(c), "; "))
	}
	if c.Subject.Cluster != "" {
		texts = append([]string{c.Subject.Cluster}, texts...)
	}
	p.printed = true
	return p.rows.Add(cells(filled(texts, "<none>")...))
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

// result is what a marker says, as a word.
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

// changedBy names the rules that changed an object; a wide table all of them, and whole.
func (p *Table) changedBy(c *engine.Change) string {
	rules := changers(c)
	if p.wide {
		return strings.Join(rules, ", ")
	}
	return fitting(", ", len(rules), func(i int) string { return middle(rules[i], cellRule) })
}

// changes lists fields with their values.
func (p *Table) changes(c *engine.Change) string {
	return fitting("; ", len(c.Fields), func(i int) string { return p.change(&c.Fields[i]) })
}

// fitting lists as many texts as a row has room for: one that is wider makes all rows so.
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

// change is a field with its values, as short as can be.
func (p *Table) change(f *engine.FieldChange) string {
	path := p.path(*f)
	if len(path) > cellPath { // its end says more
		path = "..." + strings.ToValidUTF8(path[len(path)-cellPath:], "")
	}
	switch f.Kind {
	case engine.Added:
		return "+" + path + "=" + short(f.To)
	case engine.Removed:
		return "-" + path
	case engine.Moved:
		return ">" + path
	}
	return path + ": " + short(f.From) + " -> " + short(f.To)
}

// short is a value as JSON, cut where it is long.
func short(v any) string {
	text, err := structured.MarshalLine(v)
	if err != nil {
		return "?"
	}
	return engine.Shorten(strings.TrimSuffix(text, "\n"), cellValue)
}

// remarks are the notes and warnings of a change.
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
