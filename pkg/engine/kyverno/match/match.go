package match

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Block is a match or exclude block: filters of which one, or each, must hold.
type Block struct {
	filters []*Filter
	all     bool
}

// Filter is one entry of a match or exclude block, as its document has it. All of its criteria must hold, and
// within a criterion that is a list, one item.
type Filter struct {
	Place                   string // in its block, such as "any[0]"; empty for the flat form
	Operations              []string
	Kinds                   []selector.Kind
	Name                    string
	Names, Namespaces       []string
	Annotations             map[string]string
	Labels, NamespaceLabels *selector.Labels // nil for none
	Subjects                []Subject
	Roles, ClusterRoles     []string
}

// Subject is a user, group or service account that a filter names.
type Subject struct{ Kind, Namespace, Name string }

// Filters returns the filters of a block that are not empty, and whether all of them have to hold, where otherwise one does.
// There are none where no object meets the block: an empty one is met by nothing.
func (m *Block) Filters() (filters []Filter, all bool) {
	for _, f := range m.filters {
		switch {
		case !f.Empty():
			filters = append(filters, *f)
		case m.all: // which nothing meets
			return nil, true
		}
	}
	return filters, m.all
}

// Candidate is an object as a match block sees it, in a simulated request.
type Candidate struct {
	engine.Target
	Operation engine.Operation
	Context   context.Context // of the call that the candidate is made for
	World     *engine.World   // has Namespaces and role bindings
}

// Result is whether a rule applies to a candidate, as far as one of its blocks
// decides. It costs nothing until it is to be explained.
type Result struct {
	failed   *criterion // nil where the rule applies
	filter   *Filter
	block    *Block // that does not hold, or excludes; nil where it is none
	excluded bool
}

// Applies reports whether the rule applies.
func (m Result) Applies() bool { return m.failed == nil }

// DeletionIgnored is the result for a deletion that cannot trigger a rule.
func DeletionIgnored() Result { return Result{failed: &byDeletion} }

// FilteredOut is the result for an object that Kyverno passes over.
func FilteredOut() Result { return Result{failed: &byFilters} }

// OutsideNamespace is the result for an object in another namespace than its Policy.
func OutsideNamespace(ns string) Result {
	return Result{failed: &byPolicyNamespace, filter: &Filter{Namespaces: []string{ns}}}
}

// Match compares a candidate with a match block.
func (m *Block) Match(c *Candidate) (Result, error) {
	missed := Result{failed: &byNothing, block: m}
	for _, f := range m.filters {
		failed, err := f.failsMatch(c, false)
		if err != nil || failed == nil && !m.all {
			return Result{}, err
		}
		if failed != nil {
			if missed.failed, missed.filter = failed, f; m.all {
				return missed, nil
			}
		}
	}
	if m.all && len(m.filters) > 0 {
		return Result{}, nil
	}
	return missed, nil
}

// Exclude compares a candidate with an exclude block: `any` excludes by one filter
// that holds, `all` when each does. An empty filter excludes nothing.
func (m *Block) Exclude(c *Candidate) (Result, error) {
	if m == nil {
		return Result{}, nil
	}
	for i, f := range m.filters {
		failed := &byNothing
		if !f.Empty() {
			var err error
			if failed, err = f.fails(c, true, false); err != nil {
				return Result{}, err
			}
		}
		switch last := i == len(m.filters)-1; {
		case failed == nil && (last || !m.all):
			return Result{failed: &byNothing, filter: f, block: m, excluded: true}, nil
		case failed != nil && m.all:
			return Result{}, nil
		}
	}
	return Result{}, nil
}

// failsMatch is fails for a match block: where no user is simulated, its
// criteria on users do not count, and a filter without any other matches nothing.
func (f *Filter) failsMatch(c *Candidate, explain bool) (*criterion, error) {
	withUser := !c.Request.User.Empty()
	if f.Empty() || !withUser && f.emptyButUser() {
		return &byNothing, nil
	}
	return f.fails(c, withUser, explain)
}

// fails returns the first criterion that does not hold; nil if all do. The labels of the Namespace are compared last, since
// they may have to be read, but to explain.
func (f *Filter) fails(c *Candidate, withUser, explain bool) (*criterion, error) {
	for i := range criteria {
		k := &criteria[i]
		if i >= bySubjects && !withUser || i == byNamespaceSelector && !explain {
			continue
		}
		ok, err := k.holds(f, c)
		if err != nil && i == byNamespaceSelector {
			continue
		}
		if err != nil || !ok {
			return k, err
		}
	}
	if ok, err := criteria[byNamespaceSelector].holds(f, c); err != nil || !ok {
		return &criteria[byNamespaceSelector], err
	}
	return nil, nil
}

// Empty reports whether a match block lacks criteria, so that it matches nothing,
// where its author may have meant everything.
func (m *Block) Empty() bool { return len(m.selecting()) == 0 }

// Empty reports whether the filter asks for nothing.
func (f *Filter) Empty() bool {
	return f.emptyButUser() && len(f.Subjects)+len(f.Roles)+len(f.ClusterRoles) == 0
}

func (f *Filter) emptyButUser() bool {
	return len(f.Operations)+len(f.Kinds)+len(f.Names)+len(f.Namespaces)+len(f.Annotations) == 0 &&
		f.Name == "" && f.Labels == nil && f.NamespaceLabels == nil
}

// name is that of the object; one that is yet to be generated counts by its prefix.
func (c *Candidate) name() string {
	return cmp.Or(c.Object.GetName(), c.Object.GetGenerateName())
}

// NamespaceOf is what `namespaces` is compared with: a Namespace counts as its own.
func NamespaceOf(u *unstructured.Unstructured) string {
	if u.GetKind() == "Namespace" {
		return u.GetName()
	}
	return u.GetNamespace()
}

// Excluded reports whether an exclude block, as it is written, holds wherever the match block does, and whether both
// have the same filter in a list.
func (m *Block) Excluded(x *Block) (all, same bool) {
	if x == nil {
		return false, false
	}
	for _, f := range m.filters {
		held := 0
		for _, other := range x.filters {
			if other.covers(f) {
				held++
			}
			same = same || !x.all && strings.HasPrefix(f.Place, "any") && other.String() == f.String()
		}
		if held == 0 || x.all && held < len(x.filters) {
			return false, false
		}
	}
	return len(m.filters) > 0 && len(x.filters) > 0, same
}

// covers reports whether a filter holds wherever another one does: it has no criterion that the other one has not.
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
		foreign := slices.ContainsFunc(other.Kinds, func(kind selector.Kind) bool { return !slices.Contains(f.Kinds, kind) })
		if by != byKind || !every && (foreign || len(other.Kinds) == 0) {
			return false
		}
	}
	return true
}
