package compare

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
)

// Counts counts the objects of a comparison.
type Counts struct {
	Objects  int // compared
	Changed  int // objects changed by a side
	Expanded int // derived objects, as controllers would create them
	Verdicts map[Verdict]int
	// Reordered and Failed count equivalent objects whose init containers are reordered, or on which a rule
	// fails.
	Reordered, Failed int
}

// Differing counts the objects on which the sides behave differently.
func (c *Counts) Differing() int {
	n := 0
	for verdict, count := range c.Verdicts {
		if verdict.Differs() {
			n += count
		}
	}
	return n
}

// Tally counts the results of a comparison. It is not safe for concurrent use.
type Tally struct {
	Counts
	// Refused counts objects left out because a server rejects the old policies' result.
	Refused int

	showSecrets bool
	rules       [2]*ruleTally
}

type ruleTally struct {
	summary *evaluation.Summary
	held    map[engine.RuleRef]map[string]int // by reason
}

// maxReasons bounds the reasons kept for each rule.
const maxReasons = 20

// Exercise counts the objects on which a rule was tried.
type Exercise struct {
	Rule engine.RuleRef
	// Written is the rule as in the policy: Rule, or the rule that autogen derives it from.
	Written  engine.RuleRef
	Outcomes map[engine.Outcome]int
	// HeldBack counts objects by the unmet condition.
	HeldBack map[string]int
	// Variants counts the variants that the rule changed.
	Variants int
	// Connects reports that the rule also matches requests that cannot be simulated.
	Connects bool
	// Missing describes an object that would exercise the rule; empty if one did.
	Missing string
}

// Exercised reports whether the rule changed an object or a variant. A rule that Connects is never exercised.
func (e *Exercise) Exercised() bool { return e.changed() && !e.Connects }

func (e *Exercise) changed() bool { return e.Outcomes[engine.Changed]+e.Variants > 0 }

// Matched counts the objects that the rule matched.
func (e *Exercise) Matched() int {
	n := 0
	for outcome, count := range e.Outcomes {
		if outcome != engine.NotMatched {
			n += count
		}
	}
	return n
}

// Reasons lists why the rule was held back, the most frequent first.
func (e *Exercise) Reasons() []string {
	return slices.SortedFunc(maps.Keys(e.HeldBack), func(a, b string) int {
		return cmp.Or(cmp.Compare(e.HeldBack[b], e.HeldBack[a]), cmp.Compare(a, b))
	})
}

// NewTally returns a tally of the rules of a comparison.
func (c *Comparison) NewTally() *Tally {
	t := &Tally{Counts: Counts{Verdicts: map[Verdict]int{}}, showSecrets: c.options.ShowSecrets}
	for _, side := range Sides() {
		t.rules[side] = &ruleTally{
			summary: evaluation.NewSummary(c.rules[side]),
			held:    map[engine.RuleRef]map[string]int{},
		}
	}
	return t
}

// Add counts a result. Reason describes why a rule was held back, without details of one object.
func (t *Tally) Add(r *Result, reason func(error) string) {
	t.Objects++
	if r.Subject.Of != (engine.Maker{}) {
		t.Expanded++
	}
	t.Verdicts[r.Verdict]++
	if r.Changed() {
		t.Changed++
	}
	if r.Verdict == Same && r.Reordered {
		t.Reordered++
	}
	if r.Verdict == Same && r.Failed {
		t.Failed++
	}
	t.Exercise(r, reason)
}

// Withhold counts an object as not comparable, whatever its result.
func (t *Tally) Withhold() {
	t.Objects++
	t.Verdicts[NotComparable]++
}

// Exercise counts only the actions of the rules.
func (t *Tally) Exercise(r *Result, reason func(error) string) {
	for side, tally := range t.rules {
		whole := &engine.Change{Subject: r.Subject}
		for i := side; i < len(r.lanes); i += len(t.rules) {
			lane := r.lanes[i]
			if !t.showSecrets {
				lane = lane.ToShow()
			}
			whole.Steps = append(whole.Steps, lane.Steps...)
		}
		tally.summary.Add(whole)
		tally.hold(whole, reason)
	}
}

// hold counts the reasons of rules that were only held back.
func (t *ruleTally) hold(c *engine.Change, reason func(error) string) {
	seen := map[engine.RuleRef]bool{}
	for i := range c.Steps {
		if c.Steps[i].Outcome != engine.Skipped {
			seen[c.Steps[i].Rule] = true
		}
	}
	for i := range c.Steps {
		s := &c.Steps[i]
		if seen[s.Rule] || s.Err == nil {
			continue
		}
		seen[s.Rule] = true
		if t.held[s.Rule] == nil {
			t.held[s.Rule] = map[string]int{}
		}
		text := reason(s.Err)
		if _, known := t.held[s.Rule][text]; known || len(t.held[s.Rule]) < maxReasons {
			t.held[s.Rule][text]++
		}
	}
}

// Rules returns the exercises of a side's rules in evaluation order.
func (t *Tally) Rules(s Side) []Exercise {
	tally := t.rules[s]
	out := make([]Exercise, len(tally.summary.Rules))
	for i, r := range tally.summary.Rules {
		out[i] = Exercise{Rule: r.Rule, Outcomes: r.Outcomes, HeldBack: tally.held[r.Rule]}
	}
	return out
}

// Conclusion is the result of a whole comparison.
type Conclusion string

// The conclusions.
const (
	AllSame Conclusion = "same" // and each rule was exercised
	// a derived rule was not exercised, or a variant is not comparable
	SameAsTested Conclusion = "same-as-far-as-tested"
	// a rule changed nothing anywhere, and nothing else differs
	NotExercised Conclusion = "not-exercised"
	SomeDiffer   Conclusion = "differs"
	Incomparable Conclusion = "not-comparable" // in part, and nothing else differs
	Nothing      Conclusion = "nothing-compared"
)

// Summary ends a comparison.
type Summary struct {
	Conclusion Conclusion
	Counts
	// Problems counts inputs that could not be read or compiled, and that the conclusion does not cover.
	Problems int
	// Unread counts the Problems other than policies: objects that a source or a rule could not read.
	Unread     int
	Operations []engine.Operation
	Rules      [2][]Exercise
	Variants   VariantSummary
}

// VariantSummary counts the results of variants.
type VariantSummary struct {
	Compared int
	Changed  int // variants changed by a side
	// Reordered counts equivalent variants whose init containers are reordered.
	Reordered int
	Differ    int // variants on which the sides differ
	Unknown   int // incomparable variants, also because a rule reads a Secret
	// Refused counts variants left out because a server rejects the old policies' result, and the new policies'
	// differs.
	Refused int
	Kinds   int
	Limit   int // of variants
	Untried int // single-field differences beyond the limit
	Seed    uint64
}

// Join adds the counts of the same policies on other objects. A rule is exercised if either comparison
// exercises it.
func (s *Summary) Join(other *Summary) {
	s.Objects += other.Objects
	s.Changed += other.Changed
	s.Reordered += other.Reordered
	s.Failed += other.Failed
	s.Problems += other.Problems
	s.Unread += other.Unread
	s.Verdicts = sum(s.Verdicts, other.Verdicts)
	for _, operation := range other.Operations {
		if !slices.Contains(s.Operations, operation) {
			s.Operations = append(s.Operations, operation)
		}
	}
	for side := range s.Rules {
		for i := range other.Rules[side] {
			s.Rules[side] = addExercise(s.Rules[side], &other.Rules[side][i])
		}
	}
	s.Variants.Compared += other.Variants.Compared
	s.Variants.Changed += other.Variants.Changed
	s.Variants.Reordered += other.Variants.Reordered
	s.Variants.Differ += other.Variants.Differ
	s.Variants.Unknown += other.Variants.Unknown
	s.Variants.Refused += other.Variants.Refused
	s.Variants.Kinds = max(s.Variants.Kinds, other.Variants.Kinds)
	s.Variants.Limit = other.Variants.Limit
	s.Variants.Untried = max(s.Variants.Untried, other.Variants.Untried)
	s.Variants.Seed = other.Variants.Seed
	s.conclude()
}

// addExercise merges an exercise into the one of the same rule.
func addExercise(all []Exercise, other *Exercise) []Exercise {
	at := slices.IndexFunc(all, func(e Exercise) bool { return e.Rule == other.Rule })
	if at < 0 {
		at, all = len(all), append(all,
			Exercise{Rule: other.Rule, Written: other.Written, Connects: other.Connects, Missing: other.Missing})
	}
	e := &all[at]
	if e.Matched() == 0 && other.Matched() > 0 {
		e.Missing = other.Missing // the nearer one
	}
	e.Outcomes, e.HeldBack, e.Variants = sum(e.Outcomes, other.Outcomes), sum(e.HeldBack, other.HeldBack),
		e.Variants+other.Variants
	if e.Exercised() {
		e.Missing = ""
	}
	return all
}

func sum[K comparable](a, b map[K]int) map[K]int {
	out := make(map[K]int, len(a)+len(b))
	for _, counts := range []map[K]int{a, b} {
		for key, n := range counts {
			out[key] += n
		}
	}
	return out
}

// Unexercised counts the rules of both sides that were not exercised.
func (s *Summary) Unexercised() int {
	n := 0
	for _, rules := range s.Rules {
		for i := range rules {
			if !rules[i].Exercised() {
				n++
			}
		}
	}
	return n
}

// NotExercised lists the rules of a side, as written, that changed nothing anywhere, even by rules derived
// from them.
func (s *Summary) NotExercised(side Side) []Exercise {
	var out []Exercise
	exercised := map[engine.RuleRef]bool{}
	for i := range s.Rules[side] {
		e := &s.Rules[side][i]
		exercised[e.Written] = exercised[e.Written] || e.Exercised()
	}
	for _, e := range s.Rules[side] {
		if _, first := exercised[e.Written]; first && !exercised[e.Written] {
			out = append(out, e)
			delete(exercised, e.Written)
		}
	}
	return out
}

// RuleFailed reports whether any rule failed on an object, whatever the verdict.
func (s *Summary) RuleFailed() bool {
	return slices.ContainsFunc(slices.Concat(s.Rules[Old], s.Rules[New]),
		func(e Exercise) bool { return e.Outcomes[engine.Failed] > 0 })
}

// Exercised reports whether any rule changed an object.
func (s *Summary) Exercised() bool {
	return slices.ContainsFunc(slices.Concat(s.Rules[Old], s.Rules[New]),
		func(e Exercise) bool { return e.changed() })
}

// Summary returns the counts. Descriptions describe the rules, if available; variants is the tally of the
// variants, or nil.
func (t *Tally) Summary(c *Comparison, descriptions [2][]engine.Description, variants *Tally) Summary {
	out := Summary{Counts: t.Counts, Operations: c.options.Operations}
	for _, side := range Sides() {
		out.Rules[side] = t.Rules(side)
		described := make(map[engine.RuleRef]*engine.Description, len(descriptions[side]))
		for i := range slices.Backward(descriptions[side]) { // the first description of a rule counts
			described[descriptions[side][i].Rule] = &descriptions[side][i]
		}
		for i := range out.Rules[side] {
			e := &out.Rules[side][i]
			if variants != nil {
				e.Variants = variants.rules[side].summary.Rules[i].Outcomes[engine.Changed]
			}
			d := described[e.Rule]
			e.Connects, e.Written = d != nil && connects(d), e.Rule
			if d != nil && d.From != (engine.RuleRef{}) {
				e.Written = d.From
			}
			if !e.Exercised() {
				e.Missing = missing(e, d)
			}
		}
	}
	if variants != nil {
		out.Variants.Compared, out.Variants.Differ, out.Variants.Unknown = variants.Objects,
			variants.Differing(), variants.Verdicts[NotComparable]
		out.Variants.Refused, out.Variants.Changed, out.Variants.Reordered = variants.Refused,
			variants.Changed, variants.Reordered
	}
	out.conclude()
	return out
}

func (s *Summary) conclude() {
	switch {
	case s.Objects+s.Variants.Compared == 0:
		s.Conclusion = Nothing
	case s.Differing()+s.Variants.Differ > 0:
		s.Conclusion = SomeDiffer
	case s.Verdicts[NotComparable] > 0:
		s.Conclusion = Incomparable
	case len(s.NotExercised(Old))+len(s.NotExercised(New)) > 0:
		s.Conclusion = NotExercised
	case s.Unexercised() > 0, s.Variants.Unknown > 0:
		s.Conclusion = SameAsTested
	default:
		s.Conclusion = AllSame
	}
}

// connects reports whether a rule matches requests that connect to an object, such as `kubectl exec`.
func connects(d *engine.Description) bool {
	return slices.Contains(d.Operations, "CONNECT") &&
		slices.ContainsFunc(d.Requests, func(s engine.Selection) bool {
			_, known := engine.KindOfRequest(schema.GroupVersionKind{}, s.Subresource)
			return !known
		})
}

// missing describes an object that would exercise a rule.
func missing(e *Exercise, d *engine.Description) string {
	switch {
	case e.Connects:
		return "a request to connect to an object, such as that of kubectl exec, none of which is tried"
	case e.Matched() > 0 && e.Outcomes[engine.Unchanged]+e.Outcomes[engine.Skipped] == 0:
		return "an object on which it can be evaluated"
	case e.Matched() > 0 && len(e.HeldBack) > 0 && e.Outcomes[engine.Unchanged] == 0:
		return "an object that no condition holds it back from"
	case e.Matched() > 0:
		return "an object that it changes: those that it matched are as it wants"
	case d == nil || len(d.Matches)+len(d.Requests) == 0:
		return "an object that it matches"
	}
	var kinds []string
	for _, s := range slices.Concat(d.Matches, d.Requests) {
		if text := s.String(); !slices.Contains(kinds, text) {
			kinds = append(kinds, text)
		}
	}
	text := "an object that it matches: " + engine.Few(kinds)
	if len(d.Where) > 0 {
		text += "; " + strings.Join(d.Where, "; ")
	}
	return text
}
