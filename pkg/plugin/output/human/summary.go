package human

import (
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Summary prints a line for each object, and for those that change alike. Where there are more different
// changes than a screen shows, it prints the most frequent ones by field instead.
type Summary struct{ base }

// NewSummary returns a printer of a line for each object.
func NewSummary(o output.Options) *Summary {
	p := &Summary{base: newBase(o)}
	p.overview = newOverview(o)
	return p
}

// Print shows how many fields of an object would differ, and by which rules, and the
// summary.
func (p *Summary) Print(s output.Shown) error { return p.event(s, p.print) }

func (p *Summary) print(c *part) error {
	if p.overview.takesOver() && marker(&c.Change) != failure {
		return nil // it is not listed, and was counted
	}
	notes := p.page()
	p.lines(notes, c)
	several := p.several(notes, c, p.lines)
	text := Text{Marker: marker(&c.Change), Body: notes.Bytes()}
	if several != notes {
		text.Several = several.Bytes()
	}
	rules := strings.Join(changers(&c.Change), ", ")
	if c.Changed() {
		text.Note = "  " + wording.Fields(c.Fields)
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
		words: append([]byte(text.Note+"\n"), several.Bytes()...),
		text:  func() (Text, error) { return text, nil },
	})
}

// lines writes what failed and what is warned of, each warning of rules that changed the object once; with Explain, every rule.
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
			fresh := slices.DeleteFunc(slices.Clone(s.Warnings), func(w engine.Warning) bool { return slices.Contains(warned, w) })
			p.warnings(b, fresh)
			warned = append(warned, fresh...)
		} else if noted[s] > 0 {
			p.step(b, s, noted[s])
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
