package render

import (
	"bytes"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// summaryPrinter prints a line for each object.
type summaryPrinter struct{ human }

// Print says how many fields of the object would differ, and by which rules.
func (p *summaryPrinter) Print(c engine.Change) error {
	p.learn(&c)
	if !p.shown(&c) {
		return nil
	}
	var b bytes.Buffer
	m := marker(&c)
	text := m + " " + line(c.Subject.String())
	if c.Changed() {
		text += "  " + plural(len(c.Fields), "field")
	}
	if rules := changers(&c); len(rules) > 0 {
		text += "  " + strings.Join(rules, ", ")
	}
	b.WriteString(p.paint(p.markerColor(m), text) + "\n")
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Outcome == engine.Changed {
			p.warnings(&b, s.Warnings)
		} else if p.told(s) {
			p.step(&b, s)
		}
	}
	return p.write(&b)
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
