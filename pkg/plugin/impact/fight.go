package impact

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// overwritten returns which rules fight over a field: one writes it, another gives it
// another value or removes it, and the first would write it again. Rules that
// build on each other's results do not.
func (r *repeat) overwritten(c *engine.Change) []engine.Impact {
	var out []engine.Impact
	reported := map[[2]engine.RuleRef]bool{}
	for j := range c.Steps {
		second := &c.Steps[j]
		for i := range c.Steps[:j] {
			first := &c.Steps[i]
			pair := [2]engine.RuleRef{first.Rule, second.Rule}
			if first.Rule == second.Rule || reported[pair] {
				continue
			}
			fields := slices.DeleteFunc(undone(first.Fields, second.Fields), func(p fieldpath.Path) bool {
				return !r.writes(first.Rule, placeOf(p))
			})
			if len(fields) == 0 {
				continue
			}
			reported[pair] = true
			out = append(out, engine.Impact{
				Code: engine.ImpactOverwritten, Fields: fields,
				Text:   second.Rule.String() + " overwrites what " + first.Rule.String() + " wrote: " + names(fields),
				Advice: "let one of the two leave the field alone",
			})
		}
	}
	return out
}

// writes reports whether a rule writes to a place, or below or above it, once more.
func (r *repeat) writes(rule engine.RuleRef, p place) bool {
	return slices.ContainsFunc(r.wrote[rule], p.meets)
}

// undone returns the fields of the second list that give another value to, or remove,
// what the first list wrote. What is only added to is not undone.
func undone(first, second []engine.FieldChange) []fieldpath.Path {
	var out []fieldpath.Path
	for _, f := range second {
		if f.Kind != engine.Replaced && f.Kind != engine.Removed {
			continue
		}
		if slices.ContainsFunc(first, func(written engine.FieldChange) bool { return sets(written, f.Path) }) {
			out = append(out, f.Path)
		}
	}
	return out
}

// sets reports whether a field got a value that is at a path, or leads to it, or lies
// below it.
func sets(f engine.FieldChange, p fieldpath.Path) bool {
	n := min(len(f.Path), len(p))
	return (f.Kind == engine.Added || f.Kind == engine.Replaced) && f.Path[:n].Equals(p[:n])
}
