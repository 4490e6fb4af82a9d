package human

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/structured"
)

// ResultReport prints one report object.
type ResultReport struct {
	options   ResultOptions
	report    *structured.ReportWriter
	summary   resultSummary
	conflicts conflicts
}

// NewResultReport returns a printer of the report.
func NewResultReport(o ResultOptions, asYAML bool) *ResultReport {
	return &ResultReport{
		options: o,
		report:  structured.NewReportWriter(o.Out, asYAML, structured.Head{Kind: "ApplyReport", List: "results", Context: o.Context}),
		summary: resultSummary{Outcomes: map[apply.Outcome]int{}},
	}
}

type resultSummary struct {
	Outcomes  map[apply.Outcome]int `json:"outcomes"`
	Conflicts []reportConflict      `json:"conflicts,omitempty"`
}

type reportConflict struct {
	Manager string   `json:"manager"`
	Owner   string   `json:"owner"`
	Objects int      `json:"objects"`
	Fields  []string `json:"fields"`
	Flag    string   `json:"flag"` // that takes the fields over
	// Autoscalers set the fields back, whoever takes them over.
	Autoscalers []string `json:"autoscalers,omitempty"`
}

type reportResult struct {
	Object  structured.Object `json:"object"`
	Outcome apply.Outcome     `json:"outcome"`
	Method  string            `json:"method,omitempty"`
	Reason  string            `json:"methodReason,omitempty"`
	DryRun  string            `json:"dryRun,omitempty"`
	Retries int               `json:"retries,omitempty"`
	// Takeovers are the managers that lost fields by the write.
	Takeovers []reportTakeover `json:"takeovers,omitempty"`
	Notes     []string         `json:"notes,omitempty"`
	Error     string           `json:"error,omitempty"`
	// Instead is the object to change instead.
	Instead string `json:"instead,omitempty"`
	// Status is what came of the rules: Completed, Failed or Skipped.
	Status outcomeStatus     `json:"status"`
	Rules  []structured.Rule `json:"rules,omitempty"`
}

type reportTakeover struct {
	Manager string          `json:"manager"`
	Verdict request.Verdict `json:"verdict"`
	Text    string          `json:"text"` // the owner and the fields
}

// Print adds one object.
func (p *ResultReport) Print(r apply.Result) error {
	p.options.learn(&r)
	p.summary.Outcomes[r.Outcome]++
	p.conflicts.add(&r)
	out := reportResult{
		Object: structured.ObjectOf(r.Key), Outcome: r.Outcome, Method: string(r.Method), DryRun: p.options.DryRun, Retries: r.Retries,
		Instead: r.Instead, Status: statusOf(&r),
	}
	for _, rule := range r.Rules {
		out.Rules = append(out.Rules, structured.RuleOf(rule))
	}
	for _, t := range r.Takeovers {
		out.Takeovers = append(out.Takeovers, reportTakeover{t.Manager, t.Verdict, p.options.Masker.Text(t.String())})
	}
	for _, n := range ResultNotes(&r) {
		out.Notes = append(out.Notes, p.options.Masker.Text(n))
	}
	if !r.Reason.None() {
		out.Reason = p.options.Masker.Text(r.Reason.String())
	}
	if r.Err != nil {
		out.Error = p.options.Masker.Text(reasonOf(r.Err).Error())
	}
	return p.report.Add(out)
}

// Close ends the report.
func (p *ResultReport) Close() error {
	p.summary.Conflicts = p.conflicts.report()
	return p.report.Close(p.summary)
}
