package match

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
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
		return m.notMatched(c)
	}
	missed := m.block.missed(c)
	switch {
	case len(missed) == 0: // it holds by now, for what was not to be read before
		return m.notMatched(c)
	case m.block.all:
		least := slices.MinFunc(missed, byRank)
		failed := least.notMatched(c)
		failed.Criterion = least.filter.Place + ": " + failed.Criterion
		return failed
	case len(m.block.filters) == 1:
		return missed[0].notMatched(c)
	}
	slices.SortStableFunc(missed, func(a, b Result) int { return byRank(b, a) })
	out := &NoneMatchedError{Nearest: len(missed) > 1 && missed[0].rank() > missed[1].rank()}
	for _, f := range missed {
		out.Each = append(out.Each, EntryError{Place: f.filter.Place, Mismatch: f.notMatched(c)})
	}
	return out
}

// missed compares all filters again, for the mismatch of each.
func (m *Block) missed(c *Candidate) []Result {
	var out []Result
	for _, f := range m.filters {
		failed, err := f.failsMatch(c)
		if err != nil || failed == holds {
			continue
		}
		// Labels of the Namespace are compared last, since they may have to be read.
		if by, err := f.failsNamespaceSelector(c); err == nil && by != holds && rankOf(by) < rankOf(failed) {
			failed = by
		}
		out = append(out, Result{criterion: failed, filter: f})
	}
	return out
}

// rank says how much of a filter holds before its criterion fails.
func (m Result) rank() int { return rankOf(m.criterion) }

func byRank(a, b Result) int { return a.rank() - b.rank() }

// rankOf is the place of a criterion in the order in which reasons are given: what
// the object is, then what it has, then what is done to it and by whom.
func rankOf(c criterion) int {
	return slices.Index([]criterion{
		byNothing, byKind, byName, byNames, byNamespace, bySelector, byAnnotations, byNamespaceSelector,
		byOperation, bySubjects, byRoles, byClusterRoles,
	}, c)
}

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
	var parts []string
	for _, d := range f.demands() {
		parts = append(parts, d.String())
	}
	return strings.Join(parts, ", ")
}

// demand is a criterion with what it wants.
type demand struct {
	criterion criterion
	wanted    string
}

// String reads like "kinds: Pod, Deployment".
func (d demand) String() string { return string(d.criterion) + ": " + d.wanted }

// demands are the criteria that a filter has.
func (f *Filter) demands() []demand {
	var out []demand
	add := func(c criterion, wanted string) {
		if wanted != "" {
			out = append(out, demand{c, wanted})
		}
	}
	add(byOperation, strings.Join(f.Operations, ", "))
	add(byKind, kindTexts(f.Kinds))
	add(byName, f.Name)
	add(byNames, strings.Join(f.Names, ", "))
	add(byNamespace, strings.Join(f.Namespaces, ", "))
	add(byAnnotations, joinPairs(f.Annotations))
	if f.Labels != nil {
		add(bySelector, f.Labels.String())
	}
	if f.NamespaceLabels != nil {
		add(byNamespaceSelector, f.NamespaceLabels.String())
	}
	add(byRoles, strings.Join(f.Roles, ", "))
	add(byClusterRoles, strings.Join(f.ClusterRoles, ", "))
	add(bySubjects, subjectTexts(f.Subjects))
	return out
}

// notMatched names the criterion with what it wants and what the object has.
func (m Result) notMatched(c *Candidate) engine.Mismatch {
	f := m.filter
	value := func(wanted, of string) engine.Mismatch { return engine.NewMismatch(string(m.criterion), wanted, of) }
	text := func(wanted, found string) engine.Mismatch {
		return engine.Mismatch{Criterion: string(m.criterion), Wanted: wanted, Found: found}
	}
	switch m.criterion {
	case byKind:
		return value(kindTexts(f.Kinds), kindOf(c).String())
	case byName:
		return value(f.Name, c.name())
	case byNames:
		return value(strings.Join(f.Names, ", "), c.name())
	case byNamespace, byPolicyNamespace:
		return value(strings.Join(f.Namespaces, ", "), NamespaceOf(c.Object))
	case bySelector:
		return text(f.Labels.String(), engine.FoundLabels(c.Object.GetLabels(), f.Labels))
	case byAnnotations:
		return text(joinPairs(f.Annotations), engine.FoundAnnotations(c.Object.GetAnnotations(), f.Annotations))
	case byNamespaceSelector:
		return text(f.NamespaceLabels.String(), f.seenOfNamespace(c))
	case byOperation:
		return value(strings.Join(f.Operations, ", "), string(c.Operation))
	case bySubjects:
		return value(subjectTexts(f.Subjects), c.Request.User.Username)
	case byRoles:
		return value(strings.Join(f.Roles, ", "), c.Request.User.Username)
	case byClusterRoles:
		return value(strings.Join(f.ClusterRoles, ", "), c.Request.User.Username)
	}
	return text("", "")
}

func (f *Filter) seenOfNamespace(c *Candidate) string {
	labels, err := c.NamespaceLabels(c.Context, c.World, f.NamespaceLabels.Keys())
	switch {
	case c.Object.GetKind() == "Namespace":
		return "is a Namespace itself, for which this never holds"
	case err != nil:
		return "is not known"
	case c.Object.GetNamespace() == "":
		return "is in no namespace"
	}
	return "the Namespace " + engine.FoundLabels(labels, f.NamespaceLabels)
}

func kindOf(c *Candidate) selector.Kind {
	k := c.Key
	if k.Group == "" { // as people write the core group
		k.Group = "*"
	}
	return selector.Kind{Group: k.Group, Version: k.Version, Kind: k.Kind, Subresource: k.Subresource}
}

func kindTexts(kinds []selector.Kind) string {
	out := make([]string, len(kinds))
	for i, kind := range kinds {
		out[i] = kind.String()
	}
	return strings.Join(out, ", ")
}

func subjectTexts(subjects []Subject) string {
	out := make([]string, len(subjects))
	for i, s := range subjects {
		out[i] = s.Kind + " " + s.Name
	}
	return strings.Join(out, ", ")
}

func joinPairs(set map[string]string) string {
	out := make([]string, 0, len(set))
	for _, key := range sortedKeys(set) {
		out = append(out, key+"="+set[key])
	}
	return strings.Join(out, ",")
}

// UndecidedError is a criterion that cannot be compared, because what it needs
// cannot be read.
type UndecidedError struct {
	Field  string // "namespaceSelector", "roles"
	Reason string
}

// Error names the criterion and the reason.
func (e *UndecidedError) Error() string { return e.Field + ": " + e.Reason }
