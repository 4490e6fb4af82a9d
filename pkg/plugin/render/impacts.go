package render

import (
	"bytes"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/fielddiff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render/grouping"
)

// impacts adds to what is shown of an object what the change means beyond its
// fields: in full for one object, in general for several.
func (h *human) impacts(text *grouping.Text, c *engine.Change) {
	var one, several bytes.Buffer
	for i := range c.Impacts {
		impact := &c.Impacts[i]
		full := impact.Text
		if impact.Advice != "" {
			full += "; " + impact.Advice
		}
		h.warning(&one, impact.Code, full)
		switch {
		case impact.Pods > 0: // added up
		case impact.Brief == "":
			h.warning(&several, impact.Code, full)
		default:
			h.warning(&several, impact.Code, impact.Brief)
		}
	}
	text.Warnings, text.Alike = one.Bytes(), several.Bytes()
}

func (h *human) warning(b *bytes.Buffer, code engine.ImpactCode, text string) {
	b.WriteString("  " + h.paint(yellow, "! "+string(code)+": "+h.text(text)) + "\n")
}

// impactsOf writes what the changes of a group mean.
func (h *human) impactsOf(b *bytes.Buffer, g *grouping.Group) {
	if g.Count == 1 {
		b.Write(g.Warnings)
		return
	}
	b.Write(g.Alike)
	if g.Pods > 0 {
		h.warning(b, engine.ImpactRollout, fmt.Sprintf("%s would restart in all", plural(g.Pods, "Pod")))
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

// restarts says what a run would restart, and "" where that is nothing.
func restarts(r engine.Restarts) string {
	if r.Pods == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s would restart.", plural(r.Pods, "Pod"), plural(r.Workloads, "workload"))
}

type reportImpact struct {
	Code   string   `json:"code"`
	Text   string   `json:"text"`
	Advice string   `json:"advice,omitempty"`
	Fields []string `json:"fields,omitempty"`
	Owner  string   `json:"owner,omitempty"`
	Pods   int      `json:"pods,omitempty"`
}

type reportRestarts struct {
	Workloads int `json:"workloads"`
	Pods      int `json:"pods"`
}

func (o *Options) reportedImpacts(c *engine.Change) []reportImpact {
	var out []reportImpact
	for i := range c.Impacts {
		impact := &c.Impacts[i]
		r := reportImpact{
			Code: string(impact.Code), Text: o.Masker.Text(impact.Text), Advice: o.Masker.Text(impact.Advice),
			Owner: o.Masker.Text(impact.Owner), Pods: impact.Pods,
		}
		for _, p := range impact.Fields {
			r.Fields = append(r.Fields, fielddiff.PathString(o.Masker.Path(p)))
		}
		out = append(out, r)
	}
	return out
}
