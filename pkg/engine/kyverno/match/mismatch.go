package match

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// ExcludedError is why a rule that matches an object excludes it.
type ExcludedError struct {
	// Entries are the criteria that hold, of each entry of the exclude block that
	// decided: "any[0]: namespaces: kube-*".
	Entries []string
}

// Error lists what holds.
func (e *ExcludedError) Error() string {
	return "excluded by the rule's exclude block: " + strings.Join(e.Entries, "; ")
}

// NoneMatchedError is why none of several entries of a match block holds.
type NoneMatchedError struct {
	Each []EntryError // those that come nearest to holding first
	// Nearest reports that the first comes nearer than all others.
	Nearest bool
}

// EntryError is why one entry does not hold.
type EntryError struct {
	Place    string // such as "any[0]"
	Mismatch engine.Mismatch
}

// mostEntries bounds the entries that an error lists.
const mostEntries = 3

// Error goes through the entries.
func (e *NoneMatchedError) Error() string {
	var parts []string
	for i, entry := range e.Each[:min(len(e.Each), mostEntries)] {
		place := entry.Place
		if i == 0 && e.Nearest {
			place += " comes nearest"
		}
		parts = append(parts, place+": "+entry.Mismatch.Error())
	}
	if more := len(e.Each) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more entries", more))
	}
	return strings.Join(parts, "; ")
}

// Explain says why a result does not apply: by the criterion that says most about
// what the object is, whichever was compared first. It returns nil for one that applies.
func (m Result) Explain(c *Candidate) error {
	switch {
	case m.excluded:
		return m.exclusion()
	case m.block == nil || m.filter == nil:
		return m.failed.mismatch(m.filter, c)
	}
	missed := m.block.missed(c)
	switch {
	case len(missed) == 0: // it holds by now, for what was not to be read before
		return m.failed.mismatch(m.filter, c)
	case m.block.all:
		least := slices.MinFunc(missed, byRank)
		failed := least.failed.mismatch(least.filter, c)
		failed.Criterion = least.filter.Place + ": " + failed.Criterion
		return failed
	case len(m.block.filters) == 1:
		return missed[0].failed.mismatch(missed[0].filter, c)
	}
	slices.SortStableFunc(missed, func(a, b Result) int { return byRank(b, a) })
	out := &NoneMatchedError{Nearest: len(missed) > 1 && byRank(missed[0], missed[1]) > 0}
	for _, m := range missed {
		out.Each = append(out.Each, EntryError{Place: m.filter.Place, Mismatch: m.failed.mismatch(m.filter, c)})
	}
	return out
}

// missed compares all filters again, for the mismatch of each.
func (m *Block) missed(c *Candidate) []Result {
	var out []Result
	for _, f := range m.filters {
		if failed, err := f.failsMatch(c, true); err == nil && failed != nil {
			out = append(out, Result{failed: failed, filter: f})
		}
	}
	return out
}

// byRank compares how much of two filters holds before a criterion fails.
func byRank(a, b Result) int { return a.failed.rank() - b.failed.rank() }

// exclusion says what the entry that excludes asks for, or all of them where they
// decide together.
func (m Result) exclusion() error {
	filters := []*Filter{m.filter}
	if m.block.all {
		filters = m.block.filters
	}
	out := &ExcludedError{}
	for _, f := range filters {
		text := f.String()
		if f.Place != "" {
			text = f.Place + ": " + text
		}
		out.Entries = append(out.Entries, text)
	}
	return out
}

// String lists the criteria of a filter with what they want.
func (f *Filter) String() string {
	return strings.Join(f.texts(func(int, string) bool { return true }), ", ")
}

// texts lists the criteria that a filter has and that are wanted, like "kinds: Pod, Deployment".
func (f *Filter) texts(keep func(by int, wanted string) bool) []string {
	var out []string
	for _, by := range described {
		if wanted := criteria[by].wanted(f); wanted != "" && keep(by, wanted) {
			out = append(out, criteria[by].name+": "+wanted)
		}
	}
	return out
}
