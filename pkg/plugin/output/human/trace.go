package human

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// trace writes what every rule did to an object, policy by policy in the order in
// which they ran, each with its reason.
func (h *base) trace(b *page, c *engine.Change) {
	if len(c.Steps) == 0 {
		b.WriteString("  no rule was evaluated for it\n")
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

func (h *base) tracePolicy(b *page, r engine.RuleRef) {
	text := "  " + wording.Rule(r)
	if r.Origin != "" {
		text += " (" + r.Origin + ")"
	}
	b.line(Plain, text)
}

func (h *base) traceStep(b *page, s *engine.Step) {
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
		text += s.Rule.Rule + ": "
	}
	text += h.outcome(s)
	if s.Outcome != engine.NotMatched {
		for _, label := range h.labels(s) {
			text += " (" + label + ")"
		}
	}
	b.line(paint, text)
	h.fields(b, s.Fields, "        ")
	h.warnings(b, s.Warnings)
}

// outcome is the outcome of a step in words, and its reason.
func (h *base) outcome(s *engine.Step) string {
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
		return text + ": the object already has what the rule sets"
	}
	return text
}
