package match

import (
	"cmp"
	"context"
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

// criterion names what a filter fails on; the empty one means that it holds.
type criterion string

const (
	holds               criterion = ""
	byKind              criterion = "kinds"
	byName              criterion = "name"
	byNames             criterion = "names"
	byNamespace         criterion = "namespaces"
	bySelector          criterion = "selector"
	byAnnotations       criterion = "annotations"
	byNamespaceSelector criterion = "namespaceSelector"
	byOperation         criterion = "operations"
	bySubjects          criterion = "subjects"
	byRoles             criterion = "roles"
	byClusterRoles      criterion = "clusterRoles"
	byDeletion          criterion = "a deletion only triggers rules with targets that name DELETE in operations"
	byFilters           criterion = "Kyverno's resourceFilters leave the object out"
	byPolicyNamespace   criterion = "namespace of the Policy"
	byNothing           criterion = "match cannot be empty"
)

// Result is whether a rule applies to a candidate, as far as one of its blocks
// decides. It costs nothing until it is to be explained.
type Result struct {
	criterion criterion
	filter    *Filter
	block     *Block // that does not hold, or excludes; nil where it is none
	excluded  bool
}

// Applies reports whether the rule applies.
func (m Result) Applies() bool { return m.criterion == holds }

// DeletionIgnored is the result for a deletion that cannot trigger a rule.
func DeletionIgnored() Result { return Result{criterion: byDeletion} }

// FilteredOut is the result for an object that Kyverno passes over.
func FilteredOut() Result { return Result{criterion: byFilters} }

// OutsideNamespace is the result for an object in another namespace than its Policy.
func OutsideNamespace(ns string) Result {
	return Result{criterion: byPolicyNamespace, filter: &Filter{Namespaces: []string{ns}}}
}

// Match compares a candidate with a match block.
func (m *Block) Match(c *Candidate) (Result, error) {
	missed := Result{criterion: byNothing, block: m}
	for _, f := range m.filters {
		failed, err := f.failsMatch(c)
		if err != nil {
			return Result{}, err
		}
		switch {
		case failed == holds && !m.all:
			return Result{}, nil
		case failed == holds:
			continue
		case m.all:
			return Result{criterion: failed, filter: f, block: m}, nil
		}
		missed.criterion, missed.filter = failed, f
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
	for _, f := range m.filters {
		held := false
		if !f.Empty() {
			failed, err := f.fails(c, true)
			if err != nil {
				return Result{}, err
			}
			held = failed == holds
		}
		if held && !m.all {
			return Result{criterion: byNothing, filter: f, block: m, excluded: true}, nil
		}
		if !held && m.all {
			return Result{}, nil
		}
	}
	if m.all && len(m.filters) > 0 {
		return Result{criterion: byNothing, filter: m.filters[0], block: m, excluded: true}, nil
	}
	return Result{}, nil
}

// failsMatch is fails for a match block: where no user is simulated, its
// criteria on users do not count, and a filter without any other matches nothing.
func (f *Filter) failsMatch(c *Candidate) (criterion, error) {
	withUser := !c.Request.User.Empty()
	if f.Empty() || !withUser && f.emptyButUser() {
		return byNothing, nil
	}
	return f.fails(c, withUser)
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

// fails names the first criterion that does not hold.
func (f *Filter) fails(c *Candidate, withUser bool) (criterion, error) {
	if failed := f.failsObject(c); failed != holds {
		return failed, nil
	}
	if withUser {
		if failed, err := f.failsUser(c); err != nil || failed != holds {
			return failed, err
		}
	}
	return f.failsNamespaceSelector(c)
}

// name is that of the object; one that is yet to be generated counts by its prefix.
func (c *Candidate) name() string {
	return cmp.Or(c.Object.GetName(), c.Object.GetGenerateName())
}

func (f *Filter) matchesAnnotations(c *Candidate) bool {
	return selector.Pairs(f.Annotations, c.Object.GetAnnotations())
}

func (f *Filter) failsObject(c *Candidate) criterion {
	name := c.name()
	switch {
	case len(f.Kinds) > 0 && !f.matchesKind(c.Key):
		return byKind
	case f.Name != "" && !selector.MatchWildcard(f.Name, name):
		return byName
	case len(f.Names) > 0 && !selector.AnyOf(f.Names, name):
		return byNames
	case len(f.Namespaces) > 0 && !selector.AnyOf(f.Namespaces, NamespaceOf(c.Object)):
		return byNamespace
	case f.Labels != nil && !f.Labels.MatchesObject(c.Object):
		return bySelector
	case len(f.Annotations) > 0 && !f.matchesAnnotations(c):
		return byAnnotations
	case len(f.Operations) > 0 && !slices.Contains(f.Operations, string(c.Operation)):
		return byOperation
	}
	return holds
}

func (f *Filter) matchesKind(key engine.ObjectKey) bool {
	for _, kind := range f.Kinds {
		if kind.Matches(key.GroupVersionKind(), key.Subresource) {
			return true
		}
	}
	return false
}

// failsNamespaceSelector judges the labels of the object's Namespace. It never
// holds for a Namespace itself, and for other objects without a namespace there
// are no labels, as in Kyverno.
func (f *Filter) failsNamespaceSelector(c *Candidate) (criterion, error) {
	if f.NamespaceLabels == nil {
		return holds, nil
	}
	if c.Object.GetKind() == "Namespace" {
		return byNamespaceSelector, nil
	}
	labels, err := c.NamespaceLabels(c.Context, c.World, f.NamespaceLabels.Keys())
	if err != nil {
		return holds, &UndecidedError{Field: string(byNamespaceSelector), Reason: err.Error()}
	}
	if !f.NamespaceLabels.Matches(labels) {
		return byNamespaceSelector, nil
	}
	return holds, nil
}

// failsUser judges the requesting user; roles, clusterRoles and subjects must
// each hold, whatever Kyverno's own comment says.
func (f *Filter) failsUser(c *Candidate) (criterion, error) {
	if len(f.Subjects) > 0 && !c.isOneOf(f.Subjects) {
		return bySubjects, nil
	}
	if len(f.Roles)+len(f.ClusterRoles) == 0 {
		return holds, nil
	}
	bound, err := rolesOf(c.Context, c.World, c.Request.User)
	switch {
	case err != nil:
		return holds, err
	case len(f.Roles) > 0 && !overlap(f.Roles, bound.roles):
		return byRoles, nil
	case len(f.ClusterRoles) > 0 && !overlap(f.ClusterRoles, bound.clusterRoles):
		return byClusterRoles, nil
	}
	return holds, nil
}

func (c *Candidate) isOneOf(subjects []Subject) bool {
	user := c.Request.User
	for _, s := range subjects {
		switch s.Kind {
		case "User":
			if selector.MatchWildcard(s.Name, user.Username) {
				return true
			}
		case "ServiceAccount":
			if selector.MatchWildcard("system:serviceaccount:"+s.Namespace+":"+s.Name, user.Username) {
				return true
			}
		case "Group":
			for _, group := range user.Groups {
				if selector.MatchWildcard(s.Name, group) {
					return true
				}
			}
		}
	}
	return false
}

// NamespaceOf is what `namespaces` is compared with: a Namespace counts as its own.
func NamespaceOf(u *unstructured.Unstructured) string {
	if u.GetKind() == "Namespace" {
		return u.GetName()
	}
	return u.GetNamespace()
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(item string) bool { return slices.Contains(b, item) })
}
