package match

import (
	"fmt"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/wildcard"
)

// NotMatchedError is why a rule does not apply to an object: the criterion of
// its match block that came closest, what it wants and what it found.
type NotMatchedError struct {
	// Criterion is a field of a match block, such as "kinds" or
	// "namespaceSelector", with the entry that holds it where there are several.
	Criterion    string
	Wanted, Seen string
}

// Error reads like "kinds: wants Pod, Deployment, is Service".
func (e *NotMatchedError) Error() string {
	switch {
	case e.Wanted == "":
		return e.Criterion
	case e.Seen == "":
		return fmt.Sprintf("%s: wants %s, has none", e.Criterion, e.Wanted)
	}
	return fmt.Sprintf("%s: wants %s, is %s", e.Criterion, e.Wanted, e.Seen)
}

// ExcludedError is why a rule that matches an object spares it.
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
	Places []string // such as "any[0]"
	Each   []*NotMatchedError
}

// Error goes through the entries.
func (e *NoneMatchedError) Error() string {
	parts := make([]string, len(e.Each))
	for i, failed := range e.Each {
		parts[i] = e.Places[i] + ": " + failed.Error()
	}
	return strings.Join(parts, "; ")
}

// Reason renders a mismatch for those who asked.
func (m Mismatch) Reason(c *Candidate) error {
	switch {
	case m.excluded:
		return m.exclusion()
	case m.block != nil && len(m.block.filters) > 1:
		return m.noneOf(c)
	}
	failed := m.notMatched(c)
	if m.filter != nil && m.block == nil && m.filter.place != "" { // one of those that all must hold
		failed.Criterion = m.filter.place + ": " + failed.Criterion
	}
	return failed
}

func (m Mismatch) notMatched(c *Candidate) *NotMatchedError {
	wanted, seen := m.wantedAndSeen(c)
	return &NotMatchedError{Criterion: string(m.criterion), Wanted: wanted, Seen: seen}
}

// noneOf judges all entries again, each for its own reason.
func (m Mismatch) noneOf(c *Candidate) error {
	out := &NoneMatchedError{}
	for _, f := range m.block.filters {
		failed, err := f.failsMatch(c)
		if err != nil || failed == holds {
			continue
		}
		out.Places = append(out.Places, f.place)
		out.Each = append(out.Each, Mismatch{criterion: failed, filter: f}.notMatched(c))
	}
	return out
}

// exclusion says what the entry that excludes asks for, or all of them where they
// decide together.
func (m Mismatch) exclusion() error {
	filters := []*filter{m.filter}
	if m.block.all {
		filters = m.block.filters
	}
	out := &ExcludedError{}
	for _, f := range filters {
		text := f.String()
		if f.place != "" {
			text = f.place + ": " + text
		}
		out.Entries = append(out.Entries, text)
	}
	return out
}

// String lists the criteria of a filter with what they want.
func (f *filter) String() string {
	var parts []string
	add := func(c criterion, wanted string) {
		if wanted != "" {
			parts = append(parts, string(c)+": "+wanted)
		}
	}
	add(byOperation, strings.Join(f.operations, ", "))
	add(byKind, kindTexts(f.kinds))
	add(byName, f.name)
	add(byNames, strings.Join(f.names, ", "))
	add(byNamespace, strings.Join(f.namespaces, ", "))
	add(byAnnotations, joinPairs(f.annotations))
	if f.labels != nil {
		add(bySelector, f.labels.String())
	}
	if f.nsLabels != nil {
		add(byNamespaceSelector, f.nsLabels.String())
	}
	add(byRoles, strings.Join(f.roles, ", "))
	add(byClusterRoles, strings.Join(f.clusterRole, ", "))
	add(bySubjects, subjectTexts(f.subjects))
	return strings.Join(parts, ", ")
}

func (m Mismatch) wantedAndSeen(c *Candidate) (wanted, seen string) {
	f := m.filter
	switch m.criterion {
	case byOperation:
		return strings.Join(f.operations, ", "), string(c.Operation)
	case byKind:
		return kindTexts(f.kinds), kindOf(c).String()
	case byName:
		return f.name, c.Object.GetName()
	case byNames:
		return strings.Join(f.names, ", "), c.Object.GetName()
	case byNamespace, byPolicyNamespace:
		return strings.Join(f.namespaces, ", "), NamespaceOf(c.Object)
	case byAnnotations:
		return joinPairs(f.annotations), joinPairs(f.concerned(c.Object.GetAnnotations()))
	case bySelector:
		return f.labels.String(), joinPairs(c.Object.GetLabels())
	case byNamespaceSelector:
		if c.Namespace == nil {
			return f.nsLabels.String(), ""
		}
		return f.nsLabels.String(), joinPairs(c.Namespace.GetLabels())
	case byRoles:
		return strings.Join(f.roles, ", "), c.Request.User.Username
	case byClusterRoles:
		return strings.Join(f.clusterRole, ", "), c.Request.User.Username
	case bySubjects:
		return subjectTexts(f.subjects), c.Request.User.Username
	}
	return "", ""
}

// concerned are the annotations that the filter asks for, with other values. The
// others say nothing, and one of them may hold the whole object once more.
func (f *filter) concerned(annotations map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range annotations {
		for wanted := range f.annotations {
			if wildcard.Match(wanted, key) {
				out[key] = value
			}
		}
	}
	return out
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

func subjectTexts(subjects []subject) string {
	out := make([]string, len(subjects))
	for i, s := range subjects {
		out[i] = s.kind + " " + s.name
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

// UndecidedError says that a criterion cannot be judged, because what it needs
// cannot be read.
type UndecidedError struct {
	Field  string // "namespaceSelector", "roles"
	Reason string
}

// Error names the criterion and the reason.
func (e *UndecidedError) Error() string { return e.Field + ": " + e.Reason }
