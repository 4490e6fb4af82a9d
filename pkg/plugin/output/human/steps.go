package human

import (
	"fmt"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// noted returns the steps that get a line of their own because they did not change the object, and of how many triggers each
// line speaks: what a rule comes to for several of them alike is said once.
func (h *base) noted(c *engine.Change) map[*engine.Step]int {
	out := map[*engine.Step]int{}
	first := map[string]*engine.Step{}
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Outcome == engine.Changed || !h.worthALine(s) {
			continue
		}
		if s.Trigger != (engine.ObjectKey{}) {
			text := fmt.Sprint(s.Rule, s.Outcome, h.reason(s), s.Warnings)
			if alike := first[text]; alike != nil {
				out[alike]++
				continue
			}
			first[text] = s
		}
		out[s] = 1
	}
	return out
}

const triggeredBy = "triggered by "

// triggersListed are those that the line of a rule names.
const triggersListed = 3

// labels are what a reader must know about a step that changed something.
func (h *base) labels(s *engine.Step) []string {
	var out []string
	if s.AsCreated {
		out = append(out, "as if created")
	}
	if s.NotIdempotent != "" {
		out = append(out, "not idempotent: "+s.NotIdempotent)
	}
	if s.Trigger != (engine.ObjectKey{}) {
		out = append(out, triggeredBy+wording.Trigger(s))
	}
	return out
}

// reason is why a step did not change anything.
func (h *base) reason(s *engine.Step) string {
	if s.Err == nil {
		return ""
	}
	return h.text(s.Err.Error())
}

// text is a text about an object as it is shown.
func (h *base) text(s string) string { return wording.WithoutName(s, h.nameless) }

// several returns what is written of an object where it is shown with others that are like it: the same
// without its name. One is what is written where it is shown alone.
func (h *base) several(one *page, c *part, write func(*page, *part)) *page {
	remarked := c.Incomplete() || slices.ContainsFunc(c.Steps, func(s engine.Step) bool { return len(s.Warnings) > 0 })
	if h.Explain || !remarked {
		return one
	}
	h.nameless = c.Subject
	defer func() { h.nameless = engine.ObjectKey{} }()
	b := h.page()
	write(b, c)
	return b
}

// step writes the line of a step that did not change the object, for a number of triggers.
func (h *base) step(b *page, s *engine.Step, triggers int) {
	mark, paint := " ", Plain
	if s.Outcome.Incomplete() {
		mark, paint = "!", Red
	}
	text := fmt.Sprintf("  %s %s %s", mark, wording.Rule(s.Rule), s.Outcome)
	if triggers > 1 {
		text += " for " + wording.PluralNumber(triggers, "trigger")
	}
	if reason := h.reason(s); reason != "" {
		text += ": " + reason
	}
	b.line(paint, text)
	h.warnings(b, s.Warnings)
}

func (h *base) warnings(b *page, warnings []engine.Warning) {
	for _, w := range warnings {
		b.line(Yellow, "    warning: "+h.text(string(w)))
	}
}
