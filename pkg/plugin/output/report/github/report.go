package github

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Report collects annotations, and writes them at its end: of a run that writes an
// error for each rule whose changes were not all made, and a warning for each whose
// objects were in part left alone.
type Report struct {
	annotations
	writes  bool
	objects int
}

// New returns a report without annotations.
func New(o output.Options) *Report {
	w := words{failed: "failed, denied or not supported on", annotated: report.Fail, warned: "would change"}
	if o.Writes {
		w = words{failed: "could not change", annotated: report.Skip, warned: "left alone"}
	}
	return &Report{writes: o.Writes, annotations: annotations{out: o.Out, words: w, index: map[engine.RuleRef]*rule{}}}
}

// Add counts what the rules would change on an object, or changed.
func (r *Report) Add(object *report.Object) error {
	r.objects++
	r.count(object)
	return nil
}

// Problem adds an annotation.
func (r *Report) Problem(p report.Problem) error {
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, p)
	} else {
		r.leftOut++
	}
	return nil
}

// Write writes the annotations, errors first.
func (r *Report) Write(s evaluation.Summary) error {
	if r.writes {
		return r.write(wording.Plural(r.objects, "object") + " to write.")
	}
	return r.write(wording.Counts(s))
}
