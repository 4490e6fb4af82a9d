package render

import (
	"bytes"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// trace tells what every rule did to an object, policy by policy in the order in
// which they ran, each with its reason.
func (h *human) trace(b *bytes.Buffer, c *engine.Change) {
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

func (h *human) tracePolicy(b *bytes.Buffer, r engine.RuleRef) {
	text := "  " + ruleText(r)
	if r.Origin != "" {
		text += " (" + line(r.Origin) + ")"
	}
	b.WriteString(text + "\n")
}

func (h *human) traceStep(b *bytes.Buffer, s *engine.Step) {
	mark, color := " ", ""
	switch {
	case s.Outcome == engine.Changed:
		mark, color = "~", bold
	case s.Outcome.Incomplete():
		mark, color = "!", red
	case s.Outcome == engine.Unchanged:
		mark = "="
	}
	text := "    " + mark + " "
	if s.Rule.Rule != "" {
		text += line(s.Rule.Rule) + ": "
	}
	text += h.outcome(s)
	if s.Outcome != engine.NotMatched {
		for _, label := range h.labels(s) {
			text += " (" + label + ")"
		}
	}
	b.WriteString(h.paint(color, text) + "\n")
	h.fields(b, s.Fields, "        ")
	h.warnings(b, s.Warnings)
}

// outcome says what came of a step, in words, and why.
func (h *human) outcome(s *engine.Step) string {
	text := string(s.Outcome)
	if s.Outcome == engine.NotMatched {
		text = "does not match"
		if s.Trigger != (engine.ObjectKey{}) {
			text = "does not match as a trigger"
		}
	}
	if reason := h.reason(s); reason != "" {
		return text + ": " + reason
	}
	if s.Outcome == engine.Unchanged {
		return text + ": the object is as the rule wants it"
	}
	return text
}
