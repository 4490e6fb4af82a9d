package human

import (
	"bytes"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Summary prints a line for each object.
type Summary struct{ base }

// NewSummary returns a printer of a line for each object.
func NewSummary(o Options) *Summary { return &Summary{base: newBase(o)} }

// Print says how many fields of the object would differ, and by which rules.
func (p *Summary) Print(c engine.Change) error { return p.each(&c, p.print) }

func (p *Summary) print(c *part) error {
	var notes bytes.Buffer
	p.lines(&notes, c)
	text := Text{Marker: marker(&c.Change), Body: notes.Bytes()}
	rules := strings.Join(changers(&c.Change), ", ")
	if c.Changed() {
		text.Note = "  " + wording.Plural(len(c.Fields), "field")
		text.Notes = text.Note + " each"
	}
	if rules != "" {
		text.Note += "  " + rules
		text.Notes += "  " + rules
	}
	if others := c.byOthers(); others != "" {
		text.Note += "  (" + others + ")"
		text.Notes += "  (" + others + ")"
	}
	return p.show(c, content{
		words: append([]byte(text.Note+"\n"), notes.Bytes()...),
		text:  func() (Text, error) { return text, nil },
	})
}

// lines tell what there is to tell besides the changes themselves.
func (p *Summary) lines(b *bytes.Buffer, c *part) {
	if p.Explain {
		p.trace(b, &c.Change)
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
		text := redact.EscapeLine(s.Rule.String())
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
