package human

import (
	"errors"
	"strings"

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
	var derived []*engine.Step
	noted := h.noted(c)
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Outcome != engine.Changed && noted[s] == 0 {
			continue
		}
		policy := s.Rule
		policy.Rule = ""
		if i == 0 || policy != last {
			h.traceDerived(b, derived)
			last, derived = policy, nil
			h.tracePolicy(b, policy)
		}
		if derivedForOthers(s) {
			derived = append(derived, s)
			continue
		}
		h.traceStep(b, s, noted[s])
	}
	h.traceDerived(b, derived)
}

// derivedForOthers reports whether Kyverno's autogen derived the rule for other kinds than that of the object.
func derivedForOthers(s *engine.Step) bool {
	var m engine.Mismatch
	return s.Outcome == engine.NotMatched && strings.HasPrefix(s.Rule.Rule, "autogen-") && errors.As(s.Err, &m) &&
		(strings.HasSuffix(m.Criterion, "kinds") || m.Criterion == "resourceRules")
}

// traceDerived writes one line for the rules that autogen derived for other kinds.
func (h *base) traceDerived(b *page, steps []*engine.Step) {
	if len(steps) == 0 {
		return
	}
	names := make([]string, len(steps))
	for i, s := range steps {
		names[i] = s.Rule.Rule
	}
	b.line(Plain, "      derived for other kinds: "+engine.Few(names))
}

func (h *base) tracePolicy(b *page, r engine.RuleRef) {
	text := "  " + wording.Rule(r)
	if r.Origin != "" {
		text += " (" + r.Origin + ")"
	}
	b.line(Plain, text)
}

func (h *base) traceStep(b *page, s *engine.Step, triggers int) {
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
		if triggers > 1 {
			text += " (and by " + wording.PluralNumber(triggers-1, "other") + ")"
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
