package render

import (
	"bytes"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render/grouping"
)

// summaryPrinter prints a line for each object.
type summaryPrinter struct{ human }

// Print says how many fields of the object would differ, and by which rules.
func (p *summaryPrinter) Print(c engine.Change) error {
	p.begin(&c)
	if !p.shown(&c) {
		return nil
	}
	var notes bytes.Buffer
	p.lines(&notes, &c)
	text := grouping.Text{Marker: marker(&c), Body: notes.Bytes()}
	rules := strings.Join(changers(&c), ", ")
	if c.Changed() {
		text.Note = "  " + plural(len(c.Fields), "field")
		text.Notes = text.Note + " each"
	}
	if rules != "" {
		text.Note += "  " + rules
		text.Notes += "  " + rules
	}
	return p.show(&c, shown{
		words: append([]byte(text.Note+"\n"), notes.Bytes()...),
		text:  func() (grouping.Text, error) { return text, nil },
	})
}

// lines tell what there is to tell besides the changes themselves.
func (p *summaryPrinter) lines(b *bytes.Buffer, c *engine.Change) {
	if p.Explain {
		p.trace(b, c)
		return
	}
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Outcome == engine.Changed {
			p.warnings(b, s.Warnings)
		} else if p.tells(s) {
			p.step(b, s)
		}
	}
}

// changers names the rules that changed the object, each once, with what a
// reader must know about them.
func changers(c *engine.Change) []string {
	var out []string
	seen := map[engine.RuleRef]bool{}
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Outcome != engine.Changed || seen[s.Rule] {
			continue
		}
		seen[s.Rule] = true
		text := line(s.Rule.String())
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
