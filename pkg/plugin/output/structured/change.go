package structured

import (
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// encoder makes of events what a report holds.
type encoder struct{ output.Options }

type reportImpact struct {
	Code   string   `json:"code"`
	Text   string   `json:"text"`
	Advice string   `json:"advice,omitempty"`
	Fields []string `json:"fields,omitempty"`
	Owner  string   `json:"owner,omitempty"`
	Pods   int      `json:"pods,omitempty"`
}

// reported is a change as the report holds it.
func (o *encoder) reported(c *engine.Change) members {
	out := members{{"object", c.Subject}}.with("origin", c.Target.Origin) // of an object of a manifest
	if c.Changed() {                                                      // else the states do not differ
		before, after := redact.States(o.Masker, c, redact.Configured)
		if before != nil && len(before.Object) > 0 {
			out = append(out, member{"before", before.Object})
		}
		if after != nil && len(after.Object) > 0 {
			out = append(out, member{"after", after.Object})
		}
	}
	if len(c.Fields) > 0 {
		out = append(out, member{"fields", o.fields(c)})
	}
	notMatched := c.NotMatched.Len()
	var steps []any
	for i := range c.Steps {
		if s := &c.Steps[i]; s.Outcome == engine.NotMatched && !o.Explain {
			notMatched++
		} else {
			steps = append(steps, stepMembers(redact.Step(s)))
		}
	}
	if len(steps) > 0 {
		out = append(out, member{"steps", steps})
	}
	if impacts := o.impacts(c); len(impacts) > 0 { // what the change means beyond its fields
		out = append(out, member{"warnings", impacts})
	}
	if notMatched > 0 { // rules that are no steps
		out = append(out, member{"notMatched", notMatched})
	}
	return out
}

// with appends a field, unless its string is empty.
func (m members) with(name, text string) members {
	if text == "" {
		return m
	}
	return append(m, member{name, text})
}

func (o *encoder) fields(c *engine.Change) []any {
	var out []any
	for i := range c.Fields {
		f := &c.Fields[i]
		field := members{{"path", engine.PathString(f.Path)}}
		if holder := redact.Holder(c, f); holder != nil {
			// In the object that holds the field: before, if it was removed, else after.
			if pointer, ok := diff.Pointer(holder.Object, f.Path); ok && pointer != "" {
				field = append(field, member{"pointer", pointer})
			}
		}
		field = append(field, member{"kind", string(f.Kind)})
		from, to := redact.Values(o.Masker, c, f)
		if from != nil {
			field = append(field, member{"from", from})
		}
		if to != nil {
			field = append(field, member{"to", to})
		}
		out = append(out, field.rule(f.Rule))
	}
	return out
}

// rule appends what the JSON of a rule has.
func (m members) rule(r engine.RuleRef) members {
	return append(m, member{"dialect", r.Dialect}, member{"policy", r.Policy}).
		with("rule", r.Rule).with("via", r.Via).with("origin", r.Origin).with("severity", r.Severity)
}

// stepMembers returns what the JSON of a step has.
func stepMembers(s engine.Step) members {
	out := append(members{}.rule(s.Rule), member{"outcome", string(s.Outcome)})
	if s.AsCreated {
		out = append(out, member{"asCreated", true})
	}
	out = out.with("notIdempotent", s.NotIdempotent)
	if s.Trigger != (engine.ObjectKey{}) {
		out = append(out, member{"trigger", s.Trigger})
	}
	if len(s.TriggerChangedBy) > 0 {
		out = append(out, member{"triggerChangedBy", s.TriggerChangedBy})
	}
	if s.Err != nil {
		out = out.with("reason", strings.ToValidUTF8(s.Err.Error(), "\ufffd"))
	}
	if len(s.Fields) > 0 {
		paths := make([]any, len(s.Fields))
		for i := range s.Fields {
			paths[i] = engine.PathString(s.Fields[i].Path)
		}
		out = append(out, member{"fields", paths})
	}
	if len(s.Warnings) > 0 {
		out = append(out, member{"warnings", s.Warnings})
	}
	return out
}

func (o *encoder) impacts(c *engine.Change) []reportImpact {
	var out []reportImpact
	for i := range c.Impacts {
		impact := &c.Impacts[i]
		r := reportImpact{
			Code: string(impact.Code), Text: impact.Text, Advice: impact.Advice,
			Owner: impact.Owner, Pods: impact.Pods,
		}
		for _, p := range impact.Fields {
			r.Fields = append(r.Fields, engine.PathString(p))
		}
		out = append(out, r)
	}
	return out
}

type reportSummary struct {
	Objects    int                 `json:"objects"`
	Changed    int                 `json:"changed"`
	Fields     int                 `json:"fields"`
	Incomplete int                 `json:"incomplete"`
	Refused    int                 `json:"refused"`
	Warnings   int                 `json:"warnings"`
	Restarts   reportRestarts      `json:"restarts"`
	Canary     *evaluation.Canary  `json:"canary,omitempty"`
	Outdated   []string            `json:"outdated,omitempty"`
	Overlay    map[string]int      `json:"overlay,omitempty"`
	Rules      []reportRuleSummary `json:"rules"`
}

type reportRestarts struct {
	Workloads int `json:"workloads"`
	Pods      int `json:"pods"`
}

type reportRuleSummary struct {
	engine.RuleRef
	Outcomes map[engine.Outcome]int `json:"outcomes"`
}

func summaryOf(s evaluation.Summary) reportSummary {
	out := reportSummary{
		Objects: s.Objects, Changed: s.Changed, Fields: s.Fields, Incomplete: s.Incomplete, Refused: s.Refused, Warnings: s.Warnings,
		Restarts: reportRestarts(s.Restarts), Canary: s.Canary, Outdated: s.Outdated, Overlay: s.Overlay, Rules: []reportRuleSummary{},
	}
	for _, r := range s.Rules {
		out.Rules = append(out.Rules, reportRuleSummary{RuleRef: r.Rule, Outcomes: r.Outcomes})
	}
	return out
}
