package render

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/fielddiff"
)

// tablePrinter prints a row for each object, laid out as kubectl does.
type tablePrinter struct {
	human
	rows  rowWriter
	wide  bool
	count int
}

func newTable(o Options, wide bool) *tablePrinter {
	return &tablePrinter{human: newHuman(o), rows: printers.GetNewTabWriter(o.Out), wide: wide}
}

// rowWriter lines up the cells of rows.
type rowWriter interface {
	io.Writer
	Flush() error
}

// The bounds of what a row holds, and of how many are held to line them up.
const (
	rowsHeld   = 1000
	cellFields = 10
	cellValue  = 40
)

// Print prints the row of an object that would change, or of which there is
// something to tell.
func (p *tablePrinter) Print(c engine.Change) error {
	p.begin(&c)
	if !p.shown(&c) {
		return nil
	}
	if p.count == 0 {
		p.headers()
	}
	cells := []string{line(c.Subject.Namespace), resourceName(c.Subject), result(&c), fmt.Sprint(len(c.Fields)), strings.Join(changers(&c), ", ")}
	if p.wide {
		cells = append(cells, p.changes(&c), strings.Join(p.remarks(&c), "; "))
	}
	for i := range cells {
		if cells[i] == "" {
			cells[i] = "<none>"
		}
	}
	p.printed = true
	if _, err := fmt.Fprintln(p.rows, strings.Join(cells, "\t")); err != nil {
		return err
	}
	if p.count++; p.count%rowsHeld == 0 {
		return p.rows.Flush()
	}
	return nil
}

func (p *tablePrinter) headers() {
	headers := "NAMESPACE\tNAME\tRESULT\tFIELDS\tCHANGED BY"
	if p.wide {
		headers += "\tCHANGES\tREMARKS"
	}
	fmt.Fprintln(p.rows, headers)
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

// changes lists fields with their values, as short as they can be.
func (p *tablePrinter) changes(c *engine.Change) string {
	var parts []string
	for i := range c.Fields {
		if i == cellFields {
			parts = append(parts, fmt.Sprintf("and %d more", len(c.Fields)-i))
			break
		}
		f := &c.Fields[i]
		from, to := p.values(c, f)
		text := p.path(f.Field)
		switch f.Kind {
		case fielddiff.Added:
			text = "+" + text + "=" + short(to)
		case fielddiff.Removed:
			text = "-" + text
		case fielddiff.Moved:
			text = ">" + text
		case fielddiff.Replaced:
			text += ": " + short(from) + " -> " + short(to)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// short is a value as JSON, cut where it is long.
func short(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	if len(text) > cellValue {
		return line(strings.ToValidUTF8(string(text[:cellValue]), "")) + "..."
	}
	return line(string(text))
}

// remarks are all that is to be told besides the changes.
func (p *tablePrinter) remarks(c *engine.Change) []string {
	var out []string
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Outcome != engine.Changed && p.tells(s) {
			out = append(out, ruleText(s.Rule)+" "+p.outcome(s))
		}
		if s.Outcome == engine.Changed {
			for _, label := range p.labels(s) {
				out = append(out, line(s.Rule.String())+" "+label)
			}
		}
		for _, w := range s.Warnings {
			out = append(out, p.text(string(w)))
		}
	}
	for i := range c.Impacts {
		out = append(out, string(c.Impacts[i].Code)+": "+p.text(c.Impacts[i].Text))
	}
	return out
}

// Close prints what is left of the rows, and the summary.
func (p *tablePrinter) Close(s engine.Summary) error {
	if err := p.rows.Flush(); err != nil {
		return err
	}
	return p.human.Close(s)
}
