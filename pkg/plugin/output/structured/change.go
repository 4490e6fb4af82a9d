package structured

import (
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

type reportRuleSummary struct {
	engine.RuleRef
	Outcomes map[engine.Outcome]int `json:"outcomes"`
}

// encoder makes of events what a report holds.
type encoder struct{ output.Options }

// reported is a change as the report holds it. Its lists are made while they are written.
func (o *encoder) reported(c *engine.Change) []member {
	out := []member{{"object", c.Subject}}
	if c.Target.Origin != "" {
		out = append(out, member{"origin", c.Target.Origin}) // of an object of a manifest
	}
	if c.Changed() { // else the states do not differ
		before, after := redact.States(o.Masker, c, redact.Configured)
		if before != nil && len(before.Object) > 0 {
			out = append(out, member{"before", before.Object})
		}
		if after != nil && len(after.Object) > 0 {
			out = append(out, member{"after", after.Object})
		}
	}
	notMatched := c.NotMatched.Len()
	var steps []*engine.Step
	for i := range c.Steps {
		if s := &c.Steps[i]; s.Outcome == engine.NotMatched && !o.Explain {
			notMatched++
		} else {
			steps = append(steps, s)
		}
	}
	if len(c.Fields) > 0 {
		out = append(out, member{"fields", o.fields(c)})
	}
	if len(steps) > 0 {
		out = append(out, member{"steps", elements(func(yield func(any) bool) {
			for _, s := range steps {
				if !yield(stepRecord(redact.Step(s))) {
					return
				}
			}
		})})
	}
	if impacts := o.reportedImpacts(c); len(impacts) > 0 { // what the change means beyond its fields
		out = append(out, member{"warnings", impacts})
	}
	if notMatched > 0 { // rules that are no steps
		out = append(out, member{"notMatched", notMatched})
	}
	return out
}

func (o *encoder) fields(c *engine.Change) elements {
	return func(yield func(any) bool) {
		for i := range c.Fields {
			f := &c.Fields[i]
			field := append(make(record, 0, recordSize), member{"path", engine.PathString(f.Path)})
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
			if !yield(appendRule(field, f.Rule)) {
				return
			}
		}
	}
}

// recordSize is of how many members few records have more.
const recordSize = 12

// appendRule appends what the JSON of a rule has.
func appendRule(out record, r engine.RuleRef) record {
	out = append(out, member{"dialect", r.Dialect}, member{"policy", r.Policy})
	out = appendText(out, "rule", r.Rule)
	out = appendText(out, "via", r.Via)
	out = appendText(out, "origin", r.Origin)
	return appendText(out, "severity", r.Severity)
}

// appendText appends a field, unless its text is empty.
func appendText(out record, name, text string) record {
	if text == "" {
		return out
	}
	return append(out, member{name, text})
}

// stepRecord returns what the JSON of a step has.
func stepRecord(s engine.Step) record {
	out := append(appendRule(make(record, 0, recordSize), s.Rule), member{"outcome", string(s.Outcome)})
	if s.AsCreated {
		out = append(out, member{"asCreated", true})
	}
	out = appendText(out, "notIdempotent", s.NotIdempotent)
	if s.Trigger != (engine.ObjectKey{}) {
		out = append(out, member{"trigger", s.Trigger})
	}
	if len(s.TriggerChangedBy) > 0 {
		out = append(out, member{"triggerChangedBy", s.TriggerChangedBy})
	}
	if s.Err != nil {
		out = appendText(out, "reason", strings.ToValidUTF8(s.Err.Error(), "\ufffd"))
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

func summaryOf(s evaluation.Summary) []member {
	out := []member{
		{"objects", s.Objects},
		{"changed", s.Changed},
		{"fields", s.Fields},
		{"incomplete", s.Incomplete},
		{"refused", s.Refused},
		{"warnings", s.Warnings},
		{"restarts", reportRestarts(s.Restarts)},
	}
	if s.Canary != nil {
		out = append(out, member{"canary", s.Canary})
	}
	if len(s.Outdated) > 0 {
		out = append(out, member{"outdated", s.Outdated})
	}
	if len(s.Overlay) > 0 {
		out = append(out, member{"overlay", s.Overlay})
	}
	return append(out, member{"rules", elements(func(yield func(any) bool) {
		for _, r := range s.Rules {
			if !yield(reportRuleSummary{RuleRef: r.Rule, Outcomes: r.Outcomes}) {
				return
			}
		}
	})})
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

func (o *encoder) reportedImpacts(c *engine.Change) []reportImpact {
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
