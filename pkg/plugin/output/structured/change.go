package structured

import (
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// reported returns a change as the report holds it.
func (r *Report) reported(c *engine.Change) Object {
	out := Object{{"object", c.Subject}}.With("origin", c.Target.Origin). // of an object of a manifest
										addIf(c.AsCreated, "asCreated", true)
	if c.Changed() { // else the states do not differ
		before, after := redact.Trim(c.Before, c.Fields, redact.Configured),
			redact.Trim(c.After, c.Fields, redact.Configured)
		if before != nil {
			out = out.addIf(len(before.Object) > 0, "before", before.Object)
		}
		if after != nil {
			out = out.addIf(len(after.Object) > 0, "after", after.Object)
		}
	}
	var steps []any
	for i := range c.Steps {
		if s := &c.Steps[i]; s.Outcome != engine.NotMatched || r.Explain {
			steps = append(steps, stepMembers(s))
		}
	}
	notMatched, impacts := c.NotMatched(), impactsOf(c) // what the change means beyond its fields
	return out.addIf(len(c.Fields) > 0, "fields", fieldsOf(c)).addIf(len(steps) > 0, "steps", steps).
		addIf(len(impacts) > 0, "warnings", impacts).addIf(!r.Explain && notMatched > 0, "notMatched", notMatched)
}

func fieldsOf(c *engine.Change) []any {
	var out []any
	for i := range c.Fields {
		f := &c.Fields[i]
		field := Object{{"path", engine.PathString(f.Path)}}
		if holder := redact.Holder(c, f); holder != nil {
			// the object that holds the field: before, if it was removed, else after
			if pointer, ok := diff.Pointer(holder.Object, f.Path); ok {
				field = field.With("pointer", pointer)
			}
		}
		out = append(out, field.Add("kind", string(f.Kind)).addIf(f.From != nil, "from", f.From).addIf(f.To != nil,
			"to", f.To).rule(f.Rule()))
	}
	return out
}

// rule appends the fields of a rule.
func (m Object) rule(r engine.RuleRef) Object {
	return m.Add("dialect", r.Dialect).Add("policy", r.Policy).
		With("rule", r.Rule).With("via", r.Via).With("origin", r.Origin).With("severity", r.Severity)
}

// stepMembers returns the fields of a step.
func stepMembers(s *engine.Step) Object {
	out := Object{}.rule(s.Rule).Add("outcome", string(s.Outcome)).addIf(s.AsCreated, "asCreated",
		true).With("notIdempotent", s.NotIdempotent).
		addIf(s.TriggeredBy != nil, "trigger", s.Trigger()).addIf(len(s.TriggerChangedBy) > 0,
		"triggerChangedBy", s.TriggerChangedBy)
	if s.Err != nil {
		out = out.With("reason", strings.ToValidUTF8(s.Err.Error(), "\ufffd"))
	}
	paths := make([]fieldpath.Path, len(s.Fields))
	for i := range s.Fields {
		paths[i] = s.Fields[i].Path
	}
	return out.addIf(len(paths) > 0, "fields", pathsOf(paths)).addIf(len(s.Warnings) > 0, "warnings", s.Warnings)
}

func impactsOf(c *engine.Change) []any {
	var out []any
	for _, impact := range c.Impacts {
		out = append(out, Object{{"code", string(impact.Code)}, {"text", impact.Text}}.With("advice",
			impact.Advice).
			addIf(len(impact.Fields) > 0, "fields", pathsOf(impact.Fields)).With("owner", impact.Owner).With("source",
			impact.Source).addIf(impact.Pods > 0, "pods", impact.Pods))
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

func summaryOf(s evaluation.Summary) Object {
	rules := []any{}
	for _, r := range s.Rules {
		rules = append(rules, Object{}.rule(r.Rule).Add("outcomes", r.Outcomes))
	}
	return Object{
		{"objects", s.Objects},
		{"changed", s.Changed},
		{"fields", s.Fields},
		{"incomplete", s.Incomplete},
		{"refused", s.Refused},
		{"warnings", s.Warnings},
		{"restarts", Object{{"workloads", s.Restarts.Workloads}, {"pods", s.Restarts.Pods}}},
	}.addIf(s.SetBack > 0, "setBack", s.SetBack).addIf(len(s.Managed) > 0, "managed",
		s.Managed).addIf(s.Created > 0, "created", s.Created).addIf(s.Ignored > 0, "ignored",
		s.Ignored).addIf(s.Expanded != nil, "expanded", s.Expanded).addIf(s.Canary != nil, "canary",
		s.Canary).addIf(len(s.Outdated) > 0, "outdated", s.Outdated).
		addIf(len(s.Overlay) > 0, "overlay", s.Overlay).Add("rules", rules)
}

func (r *Report) result(w output.Written) Object {
	var reason, cause string
	if !w.Reason.None() {
		reason = w.Reason.String()
	}
	if w.Err != nil {
		cause = w.Cause().Error()
	}
	var takeovers []any // the managers that lost fields by the write
	for _, t := range w.Takeovers {
		takeovers = append(takeovers, Object{{"manager", t.Manager}, {"verdict", t.Verdict}, {"text", t.String()}})
	}
	notes := w.Notes()
	return Object{{"object", w.Key}, {"outcome", w.Outcome}}.With("method",
		string(w.Method)).With("methodReason", reason).
		With("dryRun", r.DryRun).addIf(w.Retries > 0, "retries", w.Retries).addIf(len(takeovers) > 0, "takeovers",
		takeovers).
		addIf(len(notes) > 0, "notes", notes).With("error", cause).With("instead", w.Instead).
		Add("status", w.RuleStatus()).addIf(len(w.Rules) > 0, "rules", w.Rules)
}

// differenceOf returns a compared object as the report holds it.
func differenceOf(e output.Compared) Object {
	var fields []any
	for i := range e.Fields { // a side that leaves the field out has no value
		f := &e.Fields[i]
		fields = append(fields, Object{{"path", engine.PathString(f.Path)}, {"kind", string(f.Kind)}}.
			addIf(f.From != nil, "old", f.From).addIf(f.To != nil, "new", f.To).
			ruleIf("oldRule", f.Rules[compare.Old]).ruleIf("newRule", f.Rules[compare.New]))
	}
	out := Object{{"object", e.Subject}}.With("origin", e.Target.Origin).Add("verdict",
		e.Verdict).Add("operations", e.Operations)
	if e.Variant != nil {
		out = out.Add("variant", variantOf(e.Variant))
	}
	out = out.addIf(len(fields) > 0, "fields", fields)
	for _, side := range compare.Sides() {
		var troubles []any // the rules that failed, denied or are not supported
		for i := range e.Changes[side].Steps {
			if s := &e.Changes[side].Steps[i]; s.Outcome.Incomplete() {
				troubles = append(troubles, stepMembers(s))
			}
		}
		out = out.addIf(len(troubles) > 0, side.String(), troubles)
	}
	return out
}

// variantOf returns a generated object, with its request and the objects around it.
func variantOf(v *compare.Variant) Object {
	var beside []any
	for _, u := range v.Beside {
		beside = append(beside, u.Object)
	}
	user := v.Request.User
	return Object{{"count", v.Count}, {"kinds", v.Kinds}, {"manifest", v.Object.Object}}.With("user",
		user.Username).
		addIf(len(user.Groups) > 0, "groups", user.Groups).addIf(v.Request.DryRun, "dryRun", true).
		addIf(len(beside) > 0, "beside", beside).addIf(len(v.Missing) > 0, "missing", v.Missing)
}

// ruleIf appends a rule, unless it is zero.
func (m Object) ruleIf(name string, r engine.RuleRef) Object {
	return m.addIf(r != engine.RuleRef{}, name, r)
}

// conclusionOf returns the summary of a comparison. Reordered and failed count equal objects whose init
// containers have another order, or on which a rule fails.
func conclusionOf(s compare.Summary) Object {
	v := s.Variants
	variants := Object{
		{"compared", v.Compared},
		{"differ", v.Differ},
		{"notComparable", v.Unknown},
		{"refused", v.Refused},
		{"kinds", v.Kinds},
		{"limit", v.Limit},
		{"untried", v.Untried},
		{"seed", v.Seed},
	}
	return Object{
		{"conclusion", s.Conclusion},
		{"objects", s.Objects},
		{"changed", s.Changed},
		{"verdicts", s.Verdicts},
	}.
		addIf(s.Expanded > 0, "expanded", s.Expanded).addIf(s.Reordered > 0, "reordered",
		s.Reordered).addIf(s.Failed > 0, "failed", s.Failed).addIf(v.Compared > 0, "variants", variants).
		Add("operations", s.Operations).Add("old", exercisesOf(s.Rules[compare.Old])).Add("new",
		exercisesOf(s.Rules[compare.New]))
}

func exercisesOf(rules []compare.Exercise) []any {
	out := []any{}
	for _, e := range rules {
		var reasons []any
		for _, reason := range e.Reasons() {
			reasons = append(reasons, Object{{"reason", reason}, {"objects", e.HeldBack[reason]}})
		}
		out = append(out, Object{}.rule(e.Rule).Add("matched", e.Matched()).Add("changed",
			e.Outcomes[engine.Changed]).
			Add("heldBack", e.Outcomes[engine.Skipped]).addIf(e.Variants > 0, "variantsChanged", e.Variants).
			addIf(len(reasons) > 0, "reasons", reasons).Add("exercised", e.Exercised()).With("missing", e.Missing))
	}
	return out
}
