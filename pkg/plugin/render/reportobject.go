package render

import (
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/fielddiff"
)

// What a report says it is.
const (
	ReportVersion     = "mutate.kubectl.dev/v1alpha1"
	PreviewReportKind = "PreviewReport"
	ApplyReportKind   = "ApplyReport"
)

type reportChange struct {
	Object objectRef `json:"object"`
	// Before and After are there only where they differ.
	Before map[string]any `json:"before,omitempty"`
	After  map[string]any `json:"after,omitempty"`
	Fields []reportField  `json:"fields,omitempty"`
	Steps  []reportStep   `json:"steps,omitempty"`
	// Warnings are what the change means beyond its fields.
	Warnings []reportImpact `json:"warnings,omitempty"`
	// NotMatched counts the rules that did not match, where they are no steps.
	NotMatched int `json:"notMatched,omitempty"`
}

type objectRef struct {
	APIVersion  string `json:"apiVersion"`
	Kind        string `json:"kind"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name"`
	UID         string `json:"uid,omitempty"`
}

type reportRule struct {
	Dialect string `json:"dialect"`
	Policy  string `json:"policy"`
	Rule    string `json:"rule,omitempty"`
	Via     string `json:"via,omitempty"`
	Origin  string `json:"origin,omitempty"`
}

type reportField struct {
	Path string `json:"path"`
	// Pointer is the JSON pointer in the object that holds the field: before, if
	// it was removed, else after.
	Pointer string `json:"pointer,omitempty"`
	Kind    string `json:"kind"`
	From    any    `json:"from,omitempty"`
	To      any    `json:"to,omitempty"`
	reportRule
}

type reportStep struct {
	reportRule
	Outcome       string     `json:"outcome"`
	AsCreated     bool       `json:"asCreated,omitempty"`
	NotIdempotent string     `json:"notIdempotent,omitempty"`
	Trigger       *objectRef `json:"trigger,omitempty"`
	Reason        string     `json:"reason,omitempty"`
	Fields        []string   `json:"fields,omitempty"` // paths that the rule changed
	Warnings      []string   `json:"warnings,omitempty"`
}

type reportSummary struct {
	Objects    int                 `json:"objects"`
	Changed    int                 `json:"changed"`
	Fields     int                 `json:"fields"`
	Incomplete int                 `json:"incomplete"`
	Warnings   int                 `json:"warnings"`
	Restarts   reportRestarts      `json:"restarts"`
	Rules      []reportRuleSummary `json:"rules"`
}

type reportRuleSummary struct {
	reportRule
	Outcomes map[engine.Outcome]int `json:"outcomes"`
}

func refOf(k engine.ObjectKey) objectRef {
	return objectRef{
		APIVersion: k.GroupVersionKind().GroupVersion().String(), Kind: k.Kind, Subresource: k.Subresource,
		Namespace: k.Namespace, Name: k.Name, UID: string(k.UID),
	}
}

func ruleOf(r engine.RuleRef) reportRule {
	return reportRule{Dialect: r.Dialect, Policy: r.Policy, Rule: r.Rule, Via: r.Via, Origin: r.Origin}
}

// reported is a change as the report holds it.
func (o *Options) reported(c *engine.Change) reportChange {
	out := reportChange{Object: refOf(c.Subject), NotMatched: len(c.NotMatched)}
	if c.Changed() {
		before, after := o.masked(c)
		if before != nil {
			out.Before = before.Object
		}
		if after != nil {
			out.After = after.Object
		}
	}
	for i := range c.Fields {
		out.Fields = append(out.Fields, o.field(c, &c.Fields[i]))
	}
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Outcome == engine.NotMatched && !o.Explain {
			out.NotMatched++
			continue
		}
		out.Steps = append(out.Steps, o.stepOf(s))
	}
	out.Warnings = o.reportedImpacts(c)
	return out
}

func (o *Options) field(c *engine.Change, f *engine.FieldChange) reportField {
	out := reportField{
		Path: fielddiff.PathString(o.Masker.Path(f.Path)), Kind: string(f.Kind),
		From: f.From, To: f.To, reportRule: ruleOf(f.Rule),
	}
	holder := c.After
	if f.Kind == fielddiff.Removed || holder == nil {
		holder = c.Before
	}
	if holder == nil {
		return out
	}
	if pointer, ok := fielddiff.Pointer(holder.Object, f.Path); ok {
		out.Pointer = o.pointer(pointer)
	}
	if f.Kind == fielddiff.Moved {
		return out // From and To are places
	}
	out.From, out.To = o.Masker.Value(holder, fieldNames(f.Path), f.From, f.To)
	return out
}

// fieldNames are the fields of a path up to the first list element.
func fieldNames(p fieldpath.Path) []string {
	var names []string
	for _, e := range p {
		if e.FieldName == nil {
			break
		}
		names = append(names, *e.FieldName)
	}
	return names
}

func (o *Options) stepOf(s *engine.Step) reportStep {
	out := reportStep{
		reportRule: ruleOf(s.Rule), Outcome: string(s.Outcome), AsCreated: s.AsCreated,
		NotIdempotent: o.Masker.Text(s.NotIdempotent), Warnings: o.warningTexts(s.Warnings),
	}
	for i := range s.Fields {
		out.Fields = append(out.Fields, fielddiff.PathString(o.Masker.Path(s.Fields[i].Path)))
	}
	if s.Trigger != (engine.ObjectKey{}) {
		trigger := refOf(s.Trigger)
		out.Trigger = &trigger
	}
	if s.Err != nil {
		out.Reason = strings.ToValidUTF8(o.Masker.Text(s.Err.Error()), "\ufffd")
	}
	return out
}

func (o *Options) warningTexts(warnings []engine.Warning) []string {
	var out []string
	for _, w := range warnings {
		out = append(out, o.Masker.Text(string(w)))
	}
	return out
}

func summaryOf(s engine.Summary) reportSummary {
	out := reportSummary{
		Objects: s.Objects, Changed: s.Changed, Fields: s.Fields,
		Incomplete: s.Incomplete, Warnings: s.Warnings, Restarts: reportRestarts(s.Restarts), Rules: []reportRuleSummary{},
	}
	for _, r := range s.Rules {
		out.Rules = append(out.Rules, reportRuleSummary{reportRule: ruleOf(r.Rule), Outcomes: r.Outcomes})
	}
	return out
}
