package structured

import (
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// reported is a change as the report holds it.
func (r *Report) reported(c *engine.Change) members {
	out := members{{"object", c.Subject}}.with("origin", c.Target.Origin) // of an object of a manifest
	if c.Changed() {                                                      // else the states do not differ
		before, after := redact.Trim(c.Before, c.Fields, redact.Configured), redact.Trim(c.After, c.Fields, redact.Configured)
		if before != nil && len(before.Object) > 0 {
			out = append(out, member{"before", before.Object})
		}
		if after != nil && len(after.Object) > 0 {
			out = append(out, member{"after", after.Object})
		}
	}
	if len(c.Fields) > 0 {
		out = append(out, member{"fields", fieldsOf(c)})
	}
	notMatched := c.NotMatched.Len()
	var steps []any
	for i := range c.Steps {
		if s := &c.Steps[i]; s.Outcome == engine.NotMatched && !r.Explain {
			notMatched++
		} else {
			steps = append(steps, stepMembers(s))
		}
	}
	if len(steps) > 0 {
		out = append(out, member{"steps", steps})
	}
	if impacts := impactsOf(c); len(impacts) > 0 { // what the change means beyond its fields
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

func fieldsOf(c *engine.Change) []any {
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
		if f.From != nil {
			field = append(field, member{"from", f.From})
		}
		if f.To != nil {
			field = append(field, member{"to", f.To})
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
func stepMembers(s *engine.Step) members {
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
		paths := make([]fieldpath.Path, len(s.Fields))
		for i := range s.Fields {
			paths[i] = s.Fields[i].Path
		}
		out = append(out, member{"fields", pathsOf(paths)})
	}
	if len(s.Warnings) > 0 {
		out = append(out, member{"warnings", s.Warnings})
	}
	return out
}

func impactsOf(c *engine.Change) []any {
	var out []any
	for i := range c.Impacts {
		impact := &c.Impacts[i]
		one := members{{"code", string(impact.Code)}, {"text", impact.Text}}.with("advice", impact.Advice)
		if len(impact.Fields) > 0 {
			one = append(one, member{"fields", pathsOf(impact.Fields)})
		}
		if one = one.with("owner", impact.Owner); impact.Pods > 0 {
			one = append(one, member{"pods", impact.Pods})
		}
		out = append(out, one)
	}
	return out
}

func pathsOf(paths []fieldpath.Path) []any {
	out := make([]any, len(paths))
	for i, p := range paths {
		out[i] = engine.PathString(p)
	}
	return out
}

func summaryOf(s evaluation.Summary) members {
	rules := []any{}
	for _, r := range s.Rules {
		rules = append(rules, append(members{}.rule(r.Rule), member{"outcomes", r.Outcomes}))
	}
	out := members{
		{"objects", s.Objects}, {"changed", s.Changed}, {"fields", s.Fields}, {"incomplete", s.Incomplete}, {"refused", s.Refused},
		{"warnings", s.Warnings}, {"restarts", members{{"workloads", s.Restarts.Workloads}, {"pods", s.Restarts.Pods}}},
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
	return append(out, member{"rules", rules})
}

type reportResult struct {
	Object  engine.ObjectKey `json:"object"`
	Outcome apply.Outcome    `json:"outcome"`
	Method  string           `json:"method,omitempty"`
	Reason  string           `json:"methodReason,omitempty"`
	DryRun  string           `json:"dryRun,omitempty"`
	Retries int              `json:"retries,omitempty"`
	// Takeovers are the managers that lost fields by the write.
	Takeovers []reportTakeover `json:"takeovers,omitempty"`
	Notes     []string         `json:"notes,omitempty"`
	Error     string           `json:"error,omitempty"`
	// Instead is the object to change instead.
	Instead string `json:"instead,omitempty"`
	// Status is the outcome of the rules: Completed, Failed or Skipped.
	Status output.RuleStatus `json:"status"`
	Rules  []engine.RuleRef  `json:"rules,omitempty"`
}

type reportTakeover struct {
	Manager string          `json:"manager"`
	Verdict request.Verdict `json:"verdict"`
	Text    string          `json:"text"` // the owner and the fields
}

func (r *Report) result(w output.Written) reportResult {
	out := reportResult{
		Object: w.Key, Outcome: w.Outcome, Method: string(w.Method), DryRun: r.DryRun, Retries: w.Retries,
		Notes: w.Notes(), Instead: w.Instead, Status: w.RuleStatus(), Rules: w.Rules,
	}
	for _, t := range w.Takeovers {
		out.Takeovers = append(out.Takeovers, reportTakeover{t.Manager, t.Verdict, t.String()})
	}
	if !w.Reason.None() {
		out.Reason = w.Reason.String()
	}
	if w.Err != nil {
		out.Error = w.Cause().Error()
	}
	return out
}
