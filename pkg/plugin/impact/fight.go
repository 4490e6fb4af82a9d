package impact

import (
	"maps"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// overwritten returns which rules fight over a field: one writes it, another gives it
// another value or removes it, and the first would write it again. Rules that
// build on each other's results do not. Of several that write a field, each is held against
// those before it, the nearest first, until it fights one. A rule fights itself where two
// triggers give a target different values.
func (r *repeat) overwritten(c *engine.Change) []engine.Impact {
	if len(r.wrote) == 0 {
		return nil
	}
	var out []engine.Impact
	reported := map[[2]engine.RuleRef]bool{}
	for j := range c.Steps {
		fights := map[int][]fieldpath.Path{} // by the step that wrote before
		for _, f := range c.Steps[j].Fields {
			if f.Kind != engine.Replaced && f.Kind != engine.Removed {
				continue
			}
			if i := r.fought(c.Steps[:j], &c.Steps[j], f.Path); i >= 0 {
				fights[i] = append(fights[i], f.Path)
			}
		}
		for _, i := range slices.Sorted(maps.Keys(fights)) {
			first, second := c.Steps[i].Rule, c.Steps[j].Rule
			if pair := [2]engine.RuleRef{first, second}; !reported[pair] {
				reported[pair] = true
				out = append(out, fight(&c.Steps[i], &c.Steps[j], fights[i]))
			}
		}
	}
	return out
}

func fight(first, second *engine.Step, over []fieldpath.Path) engine.Impact {
	out := engine.Impact{
		Code: engine.ImpactOverwritten, Fields: over,
		Text:   second.Rule.String() + " overwrites what " + first.Rule.String() + " wrote: " + names(over),
		Advice: "let one of the two leave the field alone",
	}
	if first.Rule == second.Rule {
		out.Text = second.Rule.String() + " writes one value for " + first.Trigger.String() + " and another for " + second.Trigger.String() + ": " + names(over)
		out.Brief = second.Rule.String() + " writes another value for each trigger: " + names(over)
		out.Advice = "let one trigger match"
	}
	return out
}

// fought returns the last one of the steps that set what a step overwrites at a path, and that would set it again; -1 if
// there is none.
func (r *repeat) fought(before []engine.Step, step *engine.Step, p fieldpath.Path) int {
	for i := len(before) - 1; i >= 0; i-- {
		s := &before[i]
		if (s.Rule != step.Rule || s.Trigger != step.Trigger) && meet(r.wrote[s.Rule], placeOf(p)) && sets(s, p) {
			return i
		}
	}
	return -1
}

// sets reports whether a step sets what is at a path, or leads to it, or lies below it.
func sets(s *engine.Step, p fieldpath.Path) bool {
	return slices.ContainsFunc(s.Fields, func(f engine.FieldChange) bool {
		n := min(len(p), len(f.Path))
		return (f.Kind == engine.Added || f.Kind == engine.Replaced) && f.Path[:n].Equals(p[:n])
	})
}
