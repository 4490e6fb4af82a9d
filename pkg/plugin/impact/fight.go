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
	wrote := newWriters()
	for j := range c.Steps {
		fights := map[int][]fieldpath.Path{} // by the step that wrote before
		for _, f := range c.Steps[j].Fields {
			if f.Kind != engine.Replaced && f.Kind != engine.Removed {
				continue
			}
			for _, i := range wrote.before(f.Path) {
				if (c.Steps[i].Rule != c.Steps[j].Rule || c.Steps[i].Trigger != c.Steps[j].Trigger) && r.writes(c.Steps[i].Rule, placeOf(f.Path)) {
					fights[i] = append(fights[i], f.Path)
					break
				}
			}
		}
		for _, i := range slices.Sorted(maps.Keys(fights)) {
			first, second := c.Steps[i].Rule, c.Steps[j].Rule
			if pair := [2]engine.RuleRef{first, second}; !reported[pair] {
				reported[pair] = true
				out = append(out, fight(&c.Steps[i], &c.Steps[j], fights[i]))
			}
		}
		if r.wrote[c.Steps[j].Rule] == nil {
			continue // it would not write again
		}
		for _, f := range c.Steps[j].Fields {
			if f.Kind == engine.Added || f.Kind == engine.Replaced {
				wrote.add(f.Path, j)
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

// maxWriters is how many of the writers of a path are known, the last ones.
const maxWriters = 8

// writers are the steps that set a value, by the text of its path, and by that of each path
// that leads to it.
type writers struct{ at, below map[string][]int }

func newWriters() writers { return writers{at: map[string][]int{}, below: map[string][]int{}} }

func (w writers) add(p fieldpath.Path, step int) {
	for n := range p {
		note(w.below, p[:n].String(), step)
	}
	note(w.at, p.String(), step)
}

func note(index map[string][]int, path string, step int) {
	steps := index[path]
	if n := len(steps); n > 0 && steps[n-1] == step {
		return
	}
	if steps = append(steps, step); len(steps) > maxWriters {
		steps = steps[1:]
	}
	index[path] = steps
}

// before returns the steps that set what is at a path, or leads to it, or lies below it, the
// last one first.
func (w writers) before(p fieldpath.Path) []int {
	steps := slices.Clone(w.below[p.String()])
	for n := range len(p) + 1 {
		steps = append(steps, w.at[p[:n].String()]...)
	}
	slices.Sort(steps)
	steps = slices.Compact(steps)
	slices.Reverse(steps)
	return steps
}

// writes reports whether a rule writes to a place, or below or above it, once more.
func (r *repeat) writes(rule engine.RuleRef, p place) bool {
	return r.wrote[rule].meet(p)
}
