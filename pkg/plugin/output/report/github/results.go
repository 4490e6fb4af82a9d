package github

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// NewResults returns a report of what a run wrote. Summary takes what is written for
// the summary of the step; nil where there is none.
func NewResults(o output.Options, summary report.Results) *Results {
	w := words{broken: "could not change", told: report.Skip, warned: "left alone"}
	return &Results{annotations: newAnnotations(o, w), summary: summary}
}

// Results writes the report: an error for each rule whose changes were not all made,
// a warning for each whose objects were in part left alone.
type Results struct {
	annotations
	summary report.Results
	objects int
}

// Add counts what came of an object.
func (p *Results) Add(object report.Object) error {
	p.objects++
	p.add(object)
	if p.summary == nil {
		return nil
	}
	return p.summary.Add(object)
}

// Trouble adds an annotation.
func (p *Results) Trouble(err error) error {
	p.trouble(err)
	if p.summary == nil {
		return nil
	}
	return p.summary.Trouble(err)
}

// Write writes the annotations, errors first, and ends the summary.
func (p *Results) Write() error {
	if err := p.write(wording.Plural(p.objects, "object") + " to write."); err != nil || p.summary == nil {
		return err
	}
	return p.summary.Write()
}
