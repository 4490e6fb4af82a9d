package structured

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

type reportChange struct {
	Object engine.ObjectKey `json:"object"`
	Origin string           `json:"origin,omitempty"` // of an object of a manifest
	// Before and After are there only where they differ.
	Before map[string]any `json:"before,omitempty"`
	After  map[string]any `json:"after,omitempty"`
	Fields []reportField  `json:"fields,omitempty"`
	Steps  []engine.Step  `json:"steps,omitempty"`
	// Warnings are what the change means beyond its fields.
	Warnings []reportImpact `json:"warnings,omitempty"`
	// NotMatched counts the rules that did not match, where they are no steps.
	NotMatched int `json:"notMatched,omitempty"`
}

type reportField struct {
	Path string `json:"path"`
	// Pointer is the JSON pointer in the object that holds the field: before, if
	// it was removed, else after.
	Pointer string `json:"pointer,omitempty"`
	Kind    string `json:"kind"`
	From    any    `json:"from,omitempty"`
	To      any    `json:"to,omitempty"`
	engine.RuleRef
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
	Rules      []reportRuleSummary `json:"rules"`
}

type reportRuleSummary struct {
	engine.RuleRef
	Outcomes map[engine.Outcome]int `json:"outcomes"`
}

// encoder makes of events what a report holds.
type encoder struct{ output.Options }

// reported is a change as the report holds it.
func (o *encoder) reported(c *engine.Change) reportChange {
	out := reportChange{Object: c.Subject, Origin: o.Masker.Text(c.Target.Origin), NotMatched: len(c.NotMatched)}
	if c.Changed() {
		before, after := redact.States(o.Masker, c, redact.Configured)
		if before != nil {
			out.Before = before.Object
		}
		if after != nil {
			out.After = after.Object
		}
	}
	places := map[*unstructured.Unstructured]*diff.Pointers{}
	for i := range c.Fields {
		f := &c.Fields[i]
		field := o.field(c, f)
		if holder := redact.Holder(c, f); holder != nil {
			if places[holder] == nil {
				places[holder] = diff.PointersIn(holder.Object)
			}
			if pointer, ok := places[holder].Of(f.Path); ok {
				field.Pointer = redact.Pointer(o.Masker, pointer)
			}
		}
		out.Fields = append(out.Fields, field)
	}
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Outcome == engine.NotMatched && !o.Explain {
			out.NotMatched++
			continue
		}
		out.Steps = append(out.Steps, redact.Step(o.Masker, s))
	}
	out.Warnings = o.reportedImpacts(c)
	return out
}

func (o *encoder) field(c *engine.Change, f *engine.FieldChange) reportField {
	from, to := redact.Values(o.Masker, c, f)
	return reportField{
		Path: engine.PathString(o.Masker.Path(f.Path)), Kind: string(f.Kind),
		From: from, To: to, RuleRef: f.Rule,
	}
}

func summaryOf(s evaluation.Summary) reportSummary {
	out := reportSummary{
		Objects: s.Objects, Changed: s.Changed, Fields: s.Fields,
		Incomplete: s.Incomplete, Refused: s.Refused, Warnings: s.Warnings, Restarts: reportRestarts(s.Restarts), Canary: s.Canary, Rules: []reportRuleSummary{},
	}
	for _, r := range s.Rules {
		out.Rules = append(out.Rules, reportRuleSummary{RuleRef: r.Rule, Outcomes: r.Outcomes})
	}
	return out
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
			Code: string(impact.Code), Text: o.Masker.Text(impact.Text), Advice: o.Masker.Text(impact.Advice),
			Owner: o.Masker.Text(impact.Owner), Pods: impact.Pods,
		}
		for _, p := range impact.Fields {
			r.Fields = append(r.Fields, engine.PathString(o.Masker.Path(p)))
		}
		out = append(out, r)
	}
	return out
}
