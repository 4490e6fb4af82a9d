package structured

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

// Results prints one report object: what was written.
type Results struct {
	encoder
	*document
	summary   resultSummary
	conflicts output.Conflicts
}

// NewResults returns a printer of the report of a run that writes, or of what the query
// of the options finds in it. It fails for a query that is none.
func NewResults(o output.Options, asYAML bool) (*Results, error) {
	d, err := queried(o, asYAML, Head{Kind: "ApplyReport", List: "results", Context: o.Context})
	return &Results{encoder: encoder{o}, document: d, summary: resultSummary{Outcomes: map[apply.Outcome]int{}}}, err
}

type resultSummary struct {
	Outcomes  map[apply.Outcome]int `json:"outcomes"`
	Conflicts output.Conflicts      `json:"conflicts,omitempty"`
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

// Print adds an object that was to be written, or what came of each cluster of several.
func (p *Results) Print(e output.Event) error {
	switch e := e.(type) {
	case output.Fleet:
		p.report.head.Clusters = p.clusters(e)
	case output.Written:
		p.summary.Outcomes[e.Outcome]++
		p.conflicts.Add(e)
		return p.report.Add(p.result(e))
	}
	return nil
}

func (o *encoder) result(w output.Written) reportResult {
	out := reportResult{
		Object: w.Key, Outcome: w.Outcome, Method: string(w.Method), DryRun: o.DryRun, Retries: w.Retries,
		Instead: w.Instead, Status: w.RuleStatus(), Rules: w.Rules,
	}
	for _, t := range w.Takeovers {
		out.Takeovers = append(out.Takeovers, reportTakeover{t.Manager, t.Verdict, t.String()})
	}
	out.Notes = w.Notes()
	if !w.Reason.None() {
		out.Reason = w.Reason.String()
	}
	if w.Err != nil {
		out.Error = w.Cause().Error()
	}
	return out
}

// Close ends the report.
func (p *Results) Close() error {
	p.summary.Conflicts = p.conflicts
	return p.end(p.summary)
}
