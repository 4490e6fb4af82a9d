package human

import (
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// impacts adds to what is shown of an object what the change means beyond its
// fields: in full for one object, in general for several.
func (h *base) impacts(text *Text, c *engine.Change) {
	one, several := h.page(), h.page()
	for i := range c.Impacts {
		impact := &c.Impacts[i]
		full := impact.Text
		if impact.Advice != "" {
			full += "; " + impact.Advice
		}
		h.warning(one, impact.Code, full)
		switch {
		case impact.Pods > 0: // added up
		case impact.Brief == "":
			h.warning(several, impact.Code, full)
		default:
			h.warning(several, impact.Code, impact.Brief)
		}
	}
	text.Warnings, text.Alike = one.Bytes(), several.Bytes()
}

func (h *base) warning(b *page, code engine.ImpactCode, text string) {
	b.WriteString("  ")
	b.line(Yellow, "! "+string(code)+": "+text)
}

// impactsOf writes what the changes of a group mean.
func (h *base) impactsOf(b *page, g *Group) {
	if g.Count == 1 {
		b.Write(g.Warnings)
		return
	}
	b.Write(g.Alike)
	if g.Pods > 0 {
		h.warning(b, engine.ImpactRollout, fmt.Sprintf("%s would restart in total", wording.Plural(g.Pods, "Pod")))
	}
}

// pods counts those that a change restarts.
func pods(c *engine.Change) int {
	n := 0
	for i := range c.Impacts {
		n += c.Impacts[i].Pods
	}
	return n
}
