package human

import (
	"bytes"
	"errors"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// trace tells what every rule did to an object, policy by policy in the order in
// which they ran, each with its reason.
func (h *base) trace(b *bytes.Buffer, c *engine.Change) {
	if len(c.Steps) == 0 {
		b.WriteString("  no rule was evaluated on it\n")
	}
	var last engine.RuleRef
	for i := range c.Steps {
		s := &c.Steps[i]
		policy := s.Rule
		policy.Rule = ""
		if i == 0 || policy != last {
			last = policy
			h.tracePolicy(b, policy)
		}
		h.traceStep(b, s)
	}
}

func (h *base) tracePolicy(b *bytes.Buffer, r engine.RuleRef) {
	text := "  " + wording.Rule(r)
	if r.Origin != "" {
		text += " (" + redact.EscapeLine(r.Origin) + ")"
	}
	b.WriteString(text + "\n")
}

func (h *base) traceStep(b *bytes.Buffer, s *engine.Step) {
	mark, paint := " ", Plain
	switch {
	case s.Outcome == engine.Changed:
		mark, paint = "~", Bold
	case s.Outcome.Incomplete():
		mark, paint = "!", Red
	case s.Outcome == engine.Unchanged:
		mark = "="
	}
	text := "    " + mark + " "
	if s.Rule.Rule != "" {
		text += redact.EscapeLine(s.Rule.Rule) + ": "
	}
	text += h.outcome(s)
	if s.Outcome != engine.NotMatched {
		for _, label := range h.labels(s) {
			text += " (" + label + ")"
		}
	}
	b.WriteString(h.Color.Paint(paint, text) + "\n")
	h.fields(b, s.Fields, "        ")
	h.warnings(b, s.Warnings)
}

// remedy is the flag with which the run would see what it says that it does not.
func remedy(s *engine.Step) string {
	var notSetOff *engine.NotSetOffError
	if errors.As(s.Err, &notSetOff) && len(notSetOff.Elsewhere()) > 0 {
		return "; -A reads all"
	}
	return ""
}

// outcome says what came of a step, in words, and why.
func (h *base) outcome(s *engine.Step) string {
	text := string(s.Outcome)
	if s.Outcome == engine.NotMatched {
		text = "does not match"
		if s.Trigger != (engine.ObjectKey{}) {
			text = "does not match as a trigger"
		}
	}
	if reason := h.reason(s); reason != "" {
		return text + ": " + reason + remedy(s)
	}
	if s.Outcome == engine.Unchanged {
		return text + ": the object is as the rule wants it"
	}
	return text
}
