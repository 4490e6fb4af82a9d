package output

import "github.com/kubectl-mutate/kubectl-mutate/pkg/engine"

// Listed reports whether the formats that list objects list this one: it differs, or
// needs a remark; with all reasons every object is listed.
func Listed(c *engine.Change, reasons bool) bool {
	if c.Changed() || reasons || len(c.Impacts) > 0 {
		return true
	}
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Outcome == engine.Changed || s.Outcome.Incomplete() || len(s.Warnings) > 0 {
			return true
		}
	}
	return false
}
