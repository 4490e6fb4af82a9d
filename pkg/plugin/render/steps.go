package render

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

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
