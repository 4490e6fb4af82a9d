package human

import (
	"bytes"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// labels are what a reader must know about a step that changed something.
func (h *base) labels(s *engine.Step) []string {
	var out []string
	if s.AsCreated {
		out = append(out, "as if created")
	}
	if s.NotIdempotent != "" {
		out = append(out, "not idempotent: "+h.text(s.NotIdempotent))
	}
	if s.Trigger != (engine.ObjectKey{}) {
		out = append(out, "set off by "+redact.EscapeLine(s.Trigger.String()))
	}
	return out
}

// reason is why a step did not change anything, on one line.
func (h *base) reason(s *engine.Step) string {
	if s.Err == nil {
		return ""
	}
	return h.text(s.Err.Error())
}

func (h *base) text(s string) string { return redact.EscapeLine(h.Masker.Text(s)) }

// step writes the line of a step that did not change the object.
func (h *base) step(b *bytes.Buffer, s *engine.Step) {
	mark, paint := " ", Plain
	if s.Outcome.Incomplete() {
		mark, paint = "!", Red
	}
	text := fmt.Sprintf("  %s %s %s", mark, wording.Rule(s.Rule), s.Outcome)
	if reason := h.reason(s); reason != "" {
		text += ": " + reason
	}
	b.WriteString(h.Color.Paint(paint, text) + "\n")
	h.warnings(b, s.Warnings)
}

func (h *base) warnings(b *bytes.Buffer, warnings []engine.Warning) {
	for _, w := range warnings {
		b.WriteString(h.Color.Paint(Yellow, "    warning: "+h.text(string(w))) + "\n")
	}
}
