package impact

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/openapi"
)

// repeat is the effect of rules on the result of their own change.
type repeat struct {
	first  *engine.Change // of its kind; nil after evaluation
	once   sync.Once
	err    error
	fields []fieldpath.Path // that differ again
	rules  string           // that wrote them
	places []string         // of these fields
	// wrote has the places that each rule wrote, even if another rule set them back.
	wrote map[engine.RuleRef][]string
}

// evaluate evaluates the result of the first object's change, which represents all changes of the same kind.
func (r *repeat) evaluate(ctx context.Context, e *evaluation.Evaluation) error {
	r.once.Do(func() {
		c := r.first
		r.first = nil
		second := c // the same write to the same state
		if c.Changed() {
			again := c.Target.With(c.After)
			if again.Written != nil { // as a manifest is read, with defaults
				again.Object, again.Written = openapi.AsStored(c.After), c.After
			}
			if again.OldObject != nil {
				again.OldObject = again.Object
			}
			if second, r.err = e.Evaluate(ctx, again, c.Scoped); r.err != nil {
				return
			}
		}
		r.note(second)
	})
	return r.err
}

func (r *repeat) note(second *engine.Change) {
	var rules []string
	for i := range second.Fields {
		f := &second.Fields[i]
		r.fields, r.places = append(r.fields, f.Path), append(r.places, engine.PathPattern(f.Path))
		rules = append(rules, f.Rule().String())
	}
	r.rules = strings.Join(engine.Distinct(rules), " and ")
	r.wrote = map[engine.RuleRef][]string{}
	for i := range second.Steps {
		s := &second.Steps[i]
		for _, f := range s.Fields {
			r.wrote[s.Rule] = append(r.wrote[s.Rule], engine.PathPattern(f.Path))
		}
	}
}

// kindOf is equal for changes by the same rules to the same fields of a kind, whatever the names of list
// elements, and whether there are two of them or more: a rule may repeat on several what it does not repeat
// on one.
func kindOf(c *engine.Change) string {
	parts := []string{c.Subject.GroupKind.String()}
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Outcome != engine.Changed {
			continue
		}
		parts = append(parts, s.Rule.Dialect, s.Rule.String(), s.Rule.Via)
		fields := make([]string, len(s.Fields))
		for i := range s.Fields {
			fields[i] = string(s.Fields[i].Kind) + "\x00" + engine.PathPattern(s.Fields[i].Path)
		}
		slices.Sort(fields)
		for i, field := range fields {
			if i < 2 || field != fields[i-2] {
				parts = append(parts, field)
			}
		}
	}
	return strings.Join(parts, "\x00")
}

// notIdempotent returns the impact of a change whose result would change again, so that each run makes
// another change. It names the fields of this object if they are among the repeated ones.
func (r *repeat) notIdempotent(c *engine.Change) []engine.Impact {
	if !c.Changed() || len(r.fields) == 0 {
		return nil
	}
	fields := fieldsAt(c, func(place string) bool { return meetsAny(r.places, place) })
	if len(fields) == 0 {
		fields = r.fields
	}
	return []engine.Impact{{
		Code: engine.ImpactNotIdempotent, Fields: fields,
		Text:   "each run changes it once more: evaluated on its own result, " + r.rules + " writes " + pathNames(fields),
		Brief:  "each run changes them once more: evaluated on their own result, " + r.rules + " writes " + patterns(fields),
		Advice: "give the rule a condition that no longer holds once the change is made",
	}}
}

// overwritten returns the rules that fight over a field: one writes it, another overwrites or removes it,
// and the first would write it again. Rules that build on each other's results do not fight. Each writer of
// a field is compared with those before it, the nearest first, until it fights one. A rule fights itself if
// two triggers give a target different values.
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
		Text:   second.Rule.String() + " overwrites what " + first.Rule.String() + " wrote: " + pathNames(over),
		Advice: "let one of the two leave the field alone",
	}
	if first.Rule == second.Rule {
		out.Text = second.Rule.String() + " writes one value for " + first.Trigger().String() +
			" and another for " + second.Trigger().String() + ": " + pathNames(over)
		out.Brief = second.Rule.String() + " writes another value for each trigger: " + pathNames(over)
		out.Advice = "let one trigger match"
	}
	return out
}

// fought returns the index of the last step that set what a step overwrites at a path, and would set it
// again; or -1.
func (r *repeat) fought(before []engine.Step, step *engine.Step, p fieldpath.Path) int {
	for i := len(before) - 1; i >= 0; i-- {
		s := &before[i]
		if (s.Rule != step.Rule || s.Trigger() != step.Trigger()) &&
			meetsAny(r.wrote[s.Rule], engine.PathPattern(p)) && setsPath(s, p) {
			return i
		}
	}
	return -1
}

// setsPath reports whether a step sets a path, or a path above or below it.
func setsPath(s *engine.Step, p fieldpath.Path) bool {
	return slices.ContainsFunc(s.Fields, func(f engine.FieldChange) bool {
		n := min(len(p), len(f.Path))
		return (f.Kind == engine.Added || f.Kind == engine.Replaced) && f.Path[:n].Equals(p[:n])
	})
}
