package engine

// Summary counts what a run did.
type Summary struct {
	Objects    int // evaluated: those that are there, or would be
	Changed    int // objects that would differ
	Fields     int // fields that would differ
	Incomplete int // objects with a failed, denied or unsupported step
	Warnings   int // of steps, and Impacts
	Restarts   Restarts
	// Rules counts outcomes by rule, in evaluation order. A rule that met no
	// object is there too.
	Rules []RuleSummary

	index map[RuleRef]int
}

// RuleSummary counts what one rule did.
type RuleSummary struct {
	Rule     RuleRef
	Outcomes map[Outcome]int
}

// NewSummary is the summary of a run that has not begun.
func NewSummary(rules []RuleRef) *Summary {
	s := &Summary{index: make(map[RuleRef]int, len(rules))}
	for _, r := range rules {
		s.rule(r)
	}
	return s
}

// Add counts one object. It counts the same whether the run keeps reasons or not. A
// target that is not there is no evaluated object, but what failed about it counts.
func (s *Summary) Add(c *Change) {
	if c.Before != nil || c.After != nil {
		s.Objects++
	}
	s.Fields += len(c.Fields)
	s.Warnings += len(c.Impacts)
	s.Restarts.add(c.Impacts)
	if c.Changed() {
		s.Changed++
	}
	if c.Incomplete() {
		s.Incomplete++
	}
	for i := range c.Steps {
		if c.Steps[i].unreached() {
			continue
		}
		s.rule(c.Steps[i].Rule).Outcomes[c.Steps[i].Outcome]++
		s.Warnings += len(c.Steps[i].Warnings)
	}
	for _, r := range c.NotMatched {
		s.rule(r).Outcomes[NotMatched]++
	}
}

// Outcomes adds up one outcome over all rules.
func (s *Summary) Outcomes(o Outcome) int {
	n := 0
	for i := range s.Rules {
		n += s.Rules[i].Outcomes[o]
	}
	return n
}

func (s *Summary) rule(r RuleRef) *RuleSummary {
	i, ok := s.index[r]
	if !ok {
		i = len(s.Rules)
		if s.index == nil {
			s.index = map[RuleRef]int{}
		}
		s.index[r] = i
		s.Rules = append(s.Rules, RuleSummary{Rule: r, Outcomes: map[Outcome]int{}})
	}
	return &s.Rules[i]
}
