package impact

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// refused returns what the server will refuse.
func refused(c *engine.Change) []engine.Impact {
	var out []engine.Impact
	for _, r := range ImmutableRefusals(c) {
		advice := "leave it out, or delete the " + c.Subject.Kind + " and create it anew"
		if owner := Workload(c.Before); owner != "" {
			advice = "change " + owner + " instead"
		}
		said := names(r.Fields) + " " + r.Why
		out = append(out, engine.Impact{
			Code: engine.ImpactImmutable, Fields: r.Fields, Advice: advice,
			Text: "the server will refuse it: " + said, Brief: "the server will refuse them: " + said,
		})
	}
	return out
}
