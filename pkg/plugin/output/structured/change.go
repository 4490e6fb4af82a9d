package structured

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

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
		out = append(out, member{"origin", o.Masker.Text(c.Target.Origin)}) // of an object of a manifest
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
				if !yield(redact.Step(o.Masker, s)) {
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
			if !yield(field) {
				return
			}
		}
	}
}

func (o *encoder) field(c *engine.Change, f *engine.FieldChange) reportField {
	from, to := redact.Values(o.Masker, c, f)
	return reportField{
		Path: engine.PathString(o.Masker.Path(f.Path)), Kind: string(f.Kind),
		From: from, To: to, RuleRef: f.Rule,
	}
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
