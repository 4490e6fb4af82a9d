package evaluation

import (
	"iter"
	"maps"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Summary counts the results of a run.
type Summary struct {
	Objects    int `json:"objects"`           // evaluated objects, existing or to be created
	Changed    int `json:"changed"`           // objects that would differ
	Fields     int `json:"fields"`            // fields that would differ
	Records    int `json:"records,omitempty"` // annotations that record changes, as FieldChange.Records has it
	Created    int `json:"created,omitempty"` // objects that a creation would change differently than an update
	Incomplete int `json:"incomplete"`        // objects with a failed, denied or unsupported step
	Ignored    int `json:"ignored,omitempty"` // objects that a matching rule ignores, as Change.Ignored has it
	Refused    int `json:"refused,omitempty"` // objects whose change the server would refuse, as far as known
	Warnings   int `json:"warnings"`          // of steps, and Impacts
	// SetBack counts the changed objects with changes to fields of their kubectl apply manifest.
	SetBack int `json:"setBack,omitempty"`
	// Managed counts the changed objects that tools keep as described elsewhere, by that place; places beyond
	// mostSources are left out.
	Managed []Managed `json:"managed,omitempty"`
	Restarts
	// Expanded counts objects that controllers would create, which are not in Objects; nil without any.
	Expanded *Expanded `json:"expanded,omitempty"`
	Canary   *Canary   `json:"canary,omitempty"` // of a run limited to some of the objects; nil for all
	// Outdated lists reads that the run changes, as Evaluation.Outdated has it.
	Outdated []string `json:"-"`
	// Overlay counts, by kind, the objects of files that rules read as if they were in the cluster.
	Overlay map[string]int `json:"-"`
	// Rules counts outcomes by rule, in evaluation order, including rules that met no object. Settle counts
	// mismatches.
	Rules []RuleSummary `json:"rules"`

	index map[engine.RuleRef]int
	asked []engine.RuleRef // of the last objects
	times int              // how many these are
	met   map[int]int      // on how many of them each rule has steps
}

// Expanded counts objects that do not exist, and that controllers would create for workloads of the run.
type Expanded struct {
	Objects int `json:"objects"`
	Changed int `json:"changed"` // objects that rules would change at their creation
	Fields  int `json:"fields"`  // fields that would differ
}

// Canary says how a run was limited to some of the objects.
type Canary struct {
	Percent    int  `json:"percent,omitempty"`    // of the objects; 0 for all
	LeftOut    int  `json:"leftOut"`              // objects not evaluated because of that
	MaxObjects int  `json:"maxObjects,omitempty"` // that may change; 0 for any number
	More       bool `json:"more"`                 // more would change; nothing after the first was evaluated
}

// RuleSummary counts the objects on which one rule had each outcome. An object is counted once for an
// outcome, however many triggers the rule had for it. Only a rule that changed an object and also failed on
// it, for another trigger, counts it twice: neither may hide the other.
type RuleSummary struct {
	Rule     engine.RuleRef         `json:"rule"`
	Outcomes map[engine.Outcome]int `json:"outcomes"`
	// Parameters is how many parameters of a binding are counted together, as MergeParameters has it; else 0.
	Parameters int `json:"-"`

	repeated map[engine.Outcome]int // objects already counted for another parameter
}

func (r *RuleSummary) repeat(o engine.Outcome, times int) {
	if r.repeated == nil {
		r.repeated = map[engine.Outcome]int{}
	}
	r.repeated[o] += times
}

// MergeParameters merges rules that differ only in the parameter. An object counts once, however many
// parameters it met.
func MergeParameters(rules []RuleSummary) []RuleSummary {
	var out []RuleSummary
	index := map[engine.RuleRef]int{}
	for _, r := range rules {
		open := r.Rule.WithoutParameter()
		at, known := index[open]
		if !known {
			index[open] = len(out)
			r.Parameters = 0
			out = append(out, r)
			continue
		}
		merged := &out[at]
		if merged.Parameters == 0 {
			merged.Rule, merged.Parameters, merged.Outcomes = open, 1, maps.Clone(merged.Outcomes)
			for o, n := range merged.repeated {
				merged.Outcomes[o] -= n
			}
		}
		merged.Parameters++
		for o, n := range r.Outcomes {
			merged.Outcomes[o] += n - r.repeated[o]
		}
	}
	return out
}

// MetNothing reports whether no object matched the rule.
func (r RuleSummary) MetNothing() bool {
	for o, n := range r.Outcomes {
		if o != engine.NotMatched && n > 0 {
			return false
		}
	}
	return true
}

// NewSummary returns the summary of a run that has not begun.
func NewSummary(rules []engine.RuleRef) *Summary {
	s := &Summary{}
	for _, r := range rules {
		s.place(r)
	}
	return s
}

// Add counts one object, alike with and without reasons. A missing target does not count as evaluated, but
// its failures count.
func (s *Summary) Add(c *engine.Change) {
	counted, records := engine.SplitRecords(c.ToShow().Fields)
	s.Warnings += len(c.Impacts)
	if c.Subject.Of != (engine.Maker{}) {
		s.expand(&Expanded{Objects: 1, Fields: len(counted)}, c.Changed())
		if c.Incomplete() {
			s.Incomplete++
		}
		s.addOutcomes(c)
		return
	}
	if c.Before != nil || c.After != nil {
		s.Objects++
	}
	s.Fields += len(counted) + len(records)
	s.Records += len(records)
	s.Restarts.add(c)
	if slices.ContainsFunc(c.Impacts, func(m engine.Impact) bool { return m.Code == engine.ImpactApplied }) &&
		!c.Denied() && !c.Managed() {
		s.SetBack++
	}
	if c.Changed() {
		s.Changed++
		if i := slices.IndexFunc(c.Impacts, func(m engine.Impact) bool { return m.Source != "" }); i >= 0 {
			s.addManaged(Managed{c.Impacts[i].Owner, c.Impacts[i].Source, 1})
		}
	}
	if c.Created.Changed() {
		s.Created++
	}
	if c.Incomplete() || c.Created.Incomplete() {
		s.Incomplete++
	}
	if c.Ignored() {
		s.Ignored++
	}
	if c.Refused() {
		s.Refused++
	}
	s.addOutcomes(c)
}

// Differs reports whether an object would differ: as it is, as if created, or as controllers would create it.
func (s *Summary) Differs() bool {
	return s.Changed+s.Created > 0 || s.Expanded != nil && s.Expanded.Changed > 0
}

// expand adds counts of objects that controllers would create.
func (s *Summary) expand(more *Expanded, changed bool) {
	if s.Expanded == nil {
		s.Expanded = &Expanded{}
	}
	if changed {
		more.Changed++
	}
	s.Expanded.Objects, s.Expanded.Changed, s.Expanded.Fields = s.Expanded.Objects+more.Objects,
		s.Expanded.Changed+more.Changed, s.Expanded.Fields+more.Fields
}

// addOutcomes counts the object in each rule once for each outcome that counts.
func (s *Summary) addOutcomes(c *engine.Change) {
	if len(c.Asked) != len(s.asked) || len(c.Asked) > 0 && &c.Asked[0] != &s.asked[0] {
		s.Settle()
		s.asked = c.Asked
	}
	s.times++
	had, met := map[int][]engine.Outcome{}, map[int]bool{}
	note := func(step *engine.Step, o engine.Outcome) {
		s.Warnings += len(step.Warnings)
		if o == engine.NotMatched {
			return
		}
		at := s.place(step.Rule)
		if !slices.Contains(had[at], o) {
			had[at] = append(had[at], o)
		}
		met[s.place(step.Rule.WithoutParameter())] = true
	}
	for i := range c.Steps {
		note(&c.Steps[i], c.Steps[i].Outcome)
	}
	if c.Created != nil {
		for i := range c.Created.Steps {
			step, o := &c.Created.Steps[i], c.Created.Steps[i].Outcome
			if o == engine.Changed {
				o = engine.AsCreated
			}
			note(step, o)
		}
	}
	type outcomeOf struct {
		rule    engine.RuleRef
		outcome engine.Outcome
	}
	known := map[outcomeOf]bool{} // of rules with parameters
	for at, outcomes := range had {
		r := &s.Rules[at]
		open := r.Rule.WithoutParameter()
		for _, o := range counting(outcomes) {
			r.Outcomes[o]++
			if open == r.Rule {
				continue
			}
			if known[outcomeOf{open, o}] {
				r.repeat(o, 1)
			}
			known[outcomeOf{open, o}] = true
		}
	}
	for at := range met {
		s.met[at]++
	}
}

// counting returns the outcomes of a rule on one object that count: all by which something was done or went
// wrong, else only the strongest of the others.
func counting(all []engine.Outcome) []engine.Outcome {
	isIdle := func(o engine.Outcome) bool { return slices.Contains(idle, o) }
	switch did := slices.DeleteFunc(slices.Clone(all), isIdle); {
	case len(did) > 0:
		return did
	case slices.Contains(all, engine.Unchanged):
		return []engine.Outcome{engine.Unchanged}
	}
	return all
}

// Settle counts the objects that rules did not match, after the last Add.
func (s *Summary) Settle() {
	for _, r := range s.asked {
		i := s.place(r)
		if n := s.times - s.met[i]; n > 0 {
			s.Rules[i].Outcomes[engine.NotMatched] += n
		}
	}
	s.times, s.met = 0, map[int]int{}
}

// mostSources bounds the distinct sources of objects that are kept.
const mostSources = 1000

// Managed counts changed objects that come from the same source.
type Managed struct {
	By      string `json:"by"`     // as Impact.Owner has it
	Source  string `json:"source"` // as Impact.Source has it
	Objects int    `json:"objects"`
}

func (s *Summary) addManaged(m Managed) {
	i := slices.IndexFunc(s.Managed,
		func(known Managed) bool { return known.By == m.By && known.Source == m.Source })
	switch {
	case i >= 0:
		s.Managed[i].Objects += m.Objects
	case len(s.Managed) < mostSources:
		s.Managed = append(s.Managed, m)
	}
}

// Join adds the counts of a run on other objects, with the same Overlay.
func (s *Summary) Join(other *Summary) {
	s.Objects += other.Objects
	s.Changed += other.Changed
	s.Created += other.Created
	s.Fields += other.Fields
	s.Records += other.Records
	s.Incomplete += other.Incomplete
	s.Ignored += other.Ignored
	s.Refused += other.Refused
	s.Warnings += other.Warnings
	s.SetBack += other.SetBack
	for _, m := range other.Managed {
		s.addManaged(m)
	}
	s.Restarts.Workloads += other.Restarts.Workloads
	s.Restarts.Pods += other.Restarts.Pods
	s.ManagedWorkloads += other.ManagedWorkloads
	s.ManagedPods += other.ManagedPods
	if s.Overlay == nil {
		s.Overlay = other.Overlay
	}
	if other.Expanded != nil {
		more := *other.Expanded
		s.expand(&more, false)
	}
	for _, read := range other.Outdated {
		if !slices.Contains(s.Outdated, read) {
			s.Outdated = append(s.Outdated, read)
		}
	}
	if other.Canary != nil {
		if s.Canary == nil {
			s.Canary = &Canary{Percent: other.Canary.Percent, MaxObjects: other.Canary.MaxObjects}
		}
		s.Canary.LeftOut += other.Canary.LeftOut
		s.Canary.More = s.Canary.More || other.Canary.More
	}
	for _, r := range other.Rules {
		joined := &s.Rules[s.place(r.Rule)]
		for o, n := range r.Outcomes {
			joined.Outcomes[o] += n
			joined.repeat(o, r.repeated[o])
		}
	}
}

// Recounted returns the summary with all reported objects counted again. Found has every change that reports
// something. The rest is kept: the number of objects, and how often a rule had nothing to do.
func (s *Summary) Recounted(found iter.Seq[*engine.Change]) Summary {
	var rules []engine.RuleRef
	for _, r := range s.Rules {
		rules = append(rules, r.Rule)
	}
	out := NewSummary(rules)
	for c := range found {
		out.Add(c)
	}
	out.Objects, out.Ignored, out.Canary = max(s.Objects, out.Changed), s.Ignored, s.Canary
	for _, r := range out.Rules {
		for _, o := range idle {
			delete(r.Outcomes, o)
		}
	}
	for _, r := range s.Rules {
		counted := &out.Rules[out.place(r.Rule)]
		for _, o := range idle {
			if n := r.Outcomes[o]; n > 0 {
				counted.Outcomes[o] = n
				counted.repeat(o, r.repeated[o]-counted.repeated[o])
			}
		}
	}
	return *out
}

// idle are the outcomes of a rule that did nothing, without a failure.
//
//nolint:gochecknoglobals // an immutable table
var idle = []engine.Outcome{engine.Unchanged, engine.Skipped, engine.NotMatched}

// Outcomes adds up one outcome over all rules.
func (s *Summary) Outcomes(o engine.Outcome) int {
	n := 0
	for i := range s.Rules {
		n += s.Rules[i].Outcomes[o]
	}
	return n
}

// place is the index of the rule in Rules, where a new one goes to the end. A rule that met nothing until it
// met its first parameter is counted with that: it is not a rule without an object.
func (s *Summary) place(r engine.RuleRef) int {
	if i, ok := s.index[r]; ok {
		return i
	}
	if s.index == nil {
		s.index, s.met = map[engine.RuleRef]int{}, map[int]int{}
	}
	open := r.WithoutParameter()
	i, known := s.index[open]
	if known && s.Rules[i].Rule == open && s.Rules[i].MetNothing() {
		s.Rules[i].Rule, s.index[r] = r, i
		return i
	}
	i = len(s.Rules)
	s.index[r] = i
	if !known {
		s.index[open] = i
	}
	s.Rules = append(s.Rules, RuleSummary{Rule: r, Outcomes: map[engine.Outcome]int{}})
	return i
}

// Restarts counts the restarts by a run and, separately, by a run that also wrote managed objects.
type Restarts struct {
	Workloads        int `json:"restartedWorkloads,omitempty"`
	Pods             int `json:"restartedPods,omitempty"`
	ManagedWorkloads int `json:"restartedManagedWorkloads,omitempty"`
	ManagedPods      int `json:"restartedManagedPods,omitempty"`
}

func (r *Restarts) add(c *engine.Change) {
	workloads, pods := &r.Workloads, &r.Pods
	if c.Managed() {
		workloads, pods = &r.ManagedWorkloads, &r.ManagedPods
	}
	for i := range c.Impacts {
		if n := c.Impacts[i].Pods; n > 0 && !c.Denied() {
			*workloads++
			*pods += n
		}
	}
}
