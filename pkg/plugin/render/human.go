package render

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// human is what the formats for people share: colours, headings and the
// summary at the end.
type human struct {
	Options
	printed bool
}

func newHuman(o Options) human { return human{Options: o} }

func (h *human) paint(color, text string) string {
	if !h.Color || text == "" {
		return text
	}
	return color + text + reset
}

// write sends out one block. A block is written at once, so that an error in it
// leaves no half of it behind.
func (h *human) write(b *bytes.Buffer) error {
	h.printed = true
	_, err := h.Out.Write(b.Bytes())
	return err
}

// marker says at the beginning of a line what happens to the object.
func marker(c *engine.Change) string {
	switch {
	case c.Changed() && c.Before == nil:
		return "+"
	case c.Changed():
		return "~"
	case c.Incomplete():
		return "!"
	}
	return "="
}

// color of a marker; the marker itself says the same.
func (h *human) markerColor(m string) string {
	switch m {
	case "+":
		return green
	case "!":
		return red
	}
	return bold
}

// shown tells whether the formats that list objects list this one: one that
// differs, or of which there is something to tell.
func (o *Options) shown(c *engine.Change) bool {
	if c.Changed() || o.Reasons {
		return true
	}
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Outcome == engine.Changed || s.Outcome.Incomplete() || len(s.Warnings) > 0 {
			return true
		}
	}
	return false
}

// told tells whether a step that changed nothing is worth a line.
func (o *Options) told(s *engine.Step) bool {
	return s.Outcome.Incomplete() || len(s.Warnings) > 0 || o.Reasons
}

// ruleText names a rule and how it came to apply.
func ruleText(r engine.RuleRef) string {
	var b strings.Builder
	if r.Dialect != "" {
		b.WriteString(r.Dialect + " ")
	}
	b.WriteString(r.String())
	if r.Via != "" {
		b.WriteString(" via " + r.Via)
	}
	return line(b.String())
}

// labels are what a reader must know about a step that changed something.
func (h *human) labels(s *engine.Step) []string {
	var out []string
	if s.AsCreated {
		out = append(out, "as if created")
	}
	if s.NotIdempotent != "" {
		out = append(out, "not idempotent: "+h.text(s.NotIdempotent))
	}
	if s.Trigger != (engine.ObjectKey{}) {
		out = append(out, "set off by "+line(s.Trigger.String()))
	}
	return out
}

// reason is why a step did not change anything, on one line.
func (h *human) reason(s *engine.Step) string {
	if s.Err == nil {
		return ""
	}
	return h.text(s.Err.Error())
}

func (h *human) text(s string) string { return line(h.Masker.Text(s)) }

// step writes the line of a step that did not change the object.
func (h *human) step(b *bytes.Buffer, s *engine.Step) {
	mark, color := " ", ""
	if s.Outcome.Incomplete() {
		mark, color = "!", red
	}
	text := fmt.Sprintf("  %s %s %s", mark, ruleText(s.Rule), s.Outcome)
	if reason := h.reason(s); reason != "" {
		text += ": " + reason
	}
	b.WriteString(h.paint(color, text) + "\n")
	h.warnings(b, s.Warnings)
}

func (h *human) warnings(b *bytes.Buffer, warnings []engine.Warning) {
	for _, w := range warnings {
		b.WriteString(h.paint(yellow, "    warning: "+h.text(string(w))) + "\n")
	}
}
