package plan

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Change is the entry as an evaluation handed it out, for printers: its objects
// hold what the change touches and their identity, no more.
func (e *Entry) Change() engine.Change {
	c := e.Partial.Change(e.Object)
	c.Scoped = e.Scoped
	for _, s := range e.Steps {
		c.Steps = append(c.Steps, s.engine(c.Subject, c.After))
	}
	for _, i := range e.Impacts {
		c.Impacts = append(c.Impacts, engine.Impact(i))
	}
	return c
}

func (s *Step) engine(subject engine.ObjectKey, after *unstructured.Unstructured) engine.Step {
	out := engine.Step{
		Rule: s.Rule, Subject: subject, Trigger: s.Trigger, Outcome: s.Outcome,
		AsCreated: s.AsCreated, NotIdempotent: s.NotIdempotent,
	}
	if s.Outcome == engine.Changed {
		out.After = after
	}
	for _, w := range s.Warnings {
		out.Warnings = append(out.Warnings, engine.Warning(w))
	}
	if s.Reason != "" {
		out.Err = errors.New(s.Reason)
	}
	return out
}
