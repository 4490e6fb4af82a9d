package engine

import (
	"encoding/json"
	"iter"
	"slices"
)

// RuleSet is a set of rules. What it has of a list that many sets share costs no more than what it lacks of it. Copies
// share what they hold; a method that changes a set leaves its copies as they are.
type RuleSet struct {
	Rules []RuleRef // by themselves
	Lists []RuleList
}

// RuleList is the rules of a list, but for some.
type RuleList struct {
	List   []RuleRef // of which sets hold parts; never modified
	Except []int     // places in the list, in their order
}

// same reports whether both are of one list.
func (l RuleList) same(other RuleList) bool {
	return len(l.List) == len(other.List) && len(l.List) > 0 && &l.List[0] == &other.List[0]
}

// Lacks reports whether the rule at a place of the list is left out.
func (l RuleList) Lacks(i int) bool {
	_, found := slices.BinarySearch(l.Except, i)
	return found
}

func (l RuleList) has(r RuleRef) bool {
	i := slices.Index(l.List, r)
	return i >= 0 && !l.Lacks(i)
}

// Without returns the rules but for those of which drop returns true.
func (l RuleList) Without(drop func(RuleRef) bool) RuleList {
	out := RuleList{List: l.List}
	for i, r := range l.List {
		if l.Lacks(i) || drop(r) {
			out.Except = append(out.Except, i)
		}
	}
	return out
}

// Add adds a rule.
func (s *RuleSet) Add(r RuleRef) { s.Rules = append(s.Rules, r) }

// AddList adds the rules of a list.
func (s *RuleSet) AddList(l RuleList) {
	i := slices.IndexFunc(s.Lists, l.same)
	if i < 0 {
		s.Lists = append(slices.Clip(s.Lists), l)
		return
	}
	s.Lists = slices.Clone(s.Lists)
	s.Lists[i].Except = slices.DeleteFunc(slices.Clone(s.Lists[i].Except), func(at int) bool { return !l.Lacks(at) })
}

// Join adds the rules of another set.
func (s *RuleSet) Join(other RuleSet) {
	s.Rules = append(s.Rules, other.Rules...)
	for _, l := range other.Lists {
		s.AddList(l)
	}
}

// Without returns the rules but for those of which drop returns true.
func (s *RuleSet) Without(drop func(RuleRef) bool) RuleSet {
	out := RuleSet{Rules: slices.DeleteFunc(slices.Clone(s.Rules), drop)}
	for _, l := range s.Lists {
		out.Lists = append(out.Lists, l.Without(drop))
	}
	return out
}

// Has reports whether a rule is in the set.
func (s *RuleSet) Has(r RuleRef) bool {
	return slices.Contains(s.Rules, r) || slices.ContainsFunc(s.Lists, func(l RuleList) bool { return l.has(r) })
}

// Len counts the rules; one that was added twice by itself counts twice.
func (s *RuleSet) Len() int {
	n := len(s.Rules)
	for _, l := range s.Lists {
		n += len(l.List) - len(l.Except)
	}
	return n
}

// All yields the rules.
func (s *RuleSet) All() iter.Seq[RuleRef] {
	return func(yield func(RuleRef) bool) {
		for _, r := range s.Rules {
			if !yield(r) {
				return
			}
		}
		for _, l := range s.Lists {
			except := l.Except
			for i, r := range l.List {
				if len(except) > 0 && except[0] == i {
					except = except[1:]
					continue
				}
				if !yield(r) {
					return
				}
			}
		}
	}
}

// IsZero reports whether there is no rule in the set.
func (s RuleSet) IsZero() bool { return s.Len() == 0 }

// MarshalJSON writes the rules as one list.
func (s RuleSet) MarshalJSON() ([]byte, error) { return json.Marshal(slices.Collect(s.All())) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *RuleSet) UnmarshalJSON(text []byte) error {
	*s = RuleSet{}
	return json.Unmarshal(text, &s.Rules)
}
