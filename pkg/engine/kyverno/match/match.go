package match

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Block is a match or exclude block: filters of which one, or each, must hold.
type Block struct {
	filters []*Filter
	all     bool
}

// Filter is an entry of a match or exclude block as written. All of its criteria must hold; of a criterion
// that is a list, one item.
type Filter struct {
	Place                   string // in its block, such as "any[0]"; empty for the flat form
	Operations              []string
	Kinds                   []selector.Kind
	Name                    string
	Names, Namespaces       []string
	Annotations             map[string]string
	Labels, NamespaceLabels *selector.Labels // may be nil
	Subjects                []Subject
	Roles, ClusterRoles     []string
}

// Subject is a user, group or service account that a filter names.
type Subject struct{ Kind, Namespace, Name string }

// Filters returns the non-empty filters of a block, and whether all of them must hold, not just one. There
// are none if no object can match, as for an empty block.
func (m *Block) Filters() (filters []Filter, all bool) {
	for _, f := range m.filters {
		switch {
		case !f.Empty():
			filters = append(filters, *f)
		case m.all: // an empty filter matches nothing
			return nil, true
		}
	}
	return filters, m.all
}

// Candidate is an object in a simulated request, as a match block sees it.
type Candidate struct {
	*engine.Target
	Operation engine.Operation
	Context   context.Context // of the evaluation
	World     *engine.World   // provides Namespaces and role bindings
	Explain   bool            // a NotMatchedError has a reason
}

// NotMatchedError means that a rule does not apply to a candidate.
type NotMatchedError struct{ Reason error } // nil unless Candidate.Explain is set

// Error gives the reason.
func (e *NotMatchedError) Error() string { return fmt.Sprintf("not matched: %v", e.Reason) }

// Unwrap returns the reason.
func (e *NotMatchedError) Unwrap() error { return e.Reason }

// NotMatched returns the error for a rule that does not apply; why is called only if Explain is set.
func (c *Candidate) NotMatched(why func() error) error {
	if !c.Explain {
		return unexplained
	}
	return &NotMatchedError{why()}
}

var unexplained error = &NotMatchedError{} //nolint:gochecknoglobals // an immutable value, which most objects share

// Match compares a candidate with a match block. The error is a *NotMatchedError if the rule does not apply;
// its reason prefers the identity of the object over other criteria.
func (m *Block) Match(c *Candidate) error {
	var missed []miss
	for _, f := range m.filters {
		by, err := f.failsMatch(c)
		switch {
		case err != nil && m.all && len(missed) > 0: // one miss is enough
		case err != nil:
			return err
		case by != allHold && c.Explain:
			missed = append(missed, miss{f, by})
		case by != allHold && m.all:
			return unexplained
		case by == allHold && !m.all:
			return nil
		}
	}
	if m.all && len(missed) == 0 {
		return nil
	}
	return c.NotMatched(func() error { return m.explain(c, missed) })
}

// Exclude compares a candidate with an exclude block: `any` excludes if one filter holds, `all` if each does.
// An empty filter excludes nothing. The error is a *NotMatchedError if the block excludes.
func (m *Block) Exclude(c *Candidate) error {
	if m == nil {
		return nil
	}
	for i, f := range m.filters {
		by := byNothing
		if !f.Empty() {
			var err error
			if by, err = f.fails(c, true); err != nil {
				return err
			}
		}
		switch last := i == len(m.filters)-1; {
		case by == allHold && (last || !m.all):
			return c.NotMatched(func() error { return m.exclusion(f) })
		case by != allHold && m.all:
			return nil
		}
	}
	return nil
}

// failsMatch is fails for a match block: without a simulated user, criteria on users do not count, and a
// filter without others matches nothing.
func (f *Filter) failsMatch(c *Candidate) (int, error) {
	withUser := !c.Request.User.Empty()
	if f.Empty() || !withUser && f.emptyButUser() {
		return byNothing, nil
	}
	return f.fails(c, withUser)
}

// fails returns the first criterion that does not hold, or allHold. Labels of the Namespace, which may have
// to be read, are compared last unless reasons are wanted.
func (f *Filter) fails(c *Candidate, withUser bool) (int, error) {
	for by := range criteria {
		if by >= bySubjects && !withUser || by == byNamespaceSelector && !c.Explain {
			continue
		}
		ok, err := criteria[by].holds(f, c)
		if err != nil && by == byNamespaceSelector {
			continue
		}
		if err != nil || !ok {
			return by, err
		}
	}
	if ok, err := criteria[byNamespaceSelector].holds(f, c); err != nil || !ok {
		return byNamespaceSelector, err
	}
	return allHold, nil
}

// Empty reports whether a match block has no criteria, so that it matches nothing, though its author may have
// meant everything.
func (m *Block) Empty() bool { return len(m.selecting()) == 0 }

// Narrows reports whether the block matches objects of a kind only in some namespaces.
func (m *Block) Narrows(kind string) bool {
	return !m.Empty() && !slices.ContainsFunc(m.filters, func(f *Filter) bool {
		return len(f.Namespaces) == 0 ||
			!slices.ContainsFunc(f.Kinds, func(k selector.Kind) bool { return k.Kind == kind })
	})
}

// Empty reports whether the filter has no criteria.
func (f *Filter) Empty() bool {
	return f.emptyButUser() && len(f.Subjects)+len(f.Roles)+len(f.ClusterRoles) == 0
}

func (f *Filter) emptyButUser() bool {
	return len(f.Operations)+len(f.Kinds)+len(f.Names)+len(f.Namespaces)+len(f.Annotations) == 0 &&
		f.Name == "" && f.Labels == nil && f.NamespaceLabels == nil
}

// name returns the object's name, or the prefix of a name yet to be generated.
func (c *Candidate) name() string {
	return cmp.Or(c.Object.GetName(), c.Object.GetGenerateName())
}

// NamespaceOf returns the value for `namespaces`: a Namespace is in itself.
func NamespaceOf(u *unstructured.Unstructured) string {
	if u.GetKind() == "Namespace" {
		return u.GetName()
	}
	return u.GetNamespace()
}

// Excluded reports whether a written exclude block holds wherever the match block does, and whether both
// share a filter if one decides.
func (m *Block) Excluded(x *Block) (all, same bool) {
	if x == nil {
		return false, false
	}
	all = len(m.filters) > 0 && len(x.filters) > 0
	for _, f := range m.filters {
		held := 0
		for _, other := range x.filters {
			if other.covers(f) {
				held++
			}
			same = same || !x.all && !m.all && !f.Empty() && (f.Place == "") == (other.Place == "") &&
				other.String() == f.String()
		}
		all = all && held > 0 && (!x.all || held == len(x.filters))
	}
	return all, same
}

// covers reports whether a filter holds wherever another does: all of its criteria are also the other's.
func (f *Filter) covers(other *Filter) bool {
	if f.emptyButUser() || other.emptyButUser() {
		return false
	}
	for by := range criteria {
		wanted := criteria[by].wanted(f)
		if wanted == "" || wanted == criteria[by].wanted(other) {
			continue
		}
		every := slices.ContainsFunc(f.Kinds, func(kind selector.Kind) bool { return kind.String() == "*" })
		foreign := slices.ContainsFunc(other.Kinds,
			func(kind selector.Kind) bool { return !slices.Contains(f.Kinds, kind) })
		if by != byKind || !every && (foreign || len(other.Kinds) == 0) {
			return false
		}
	}
	return true
}
