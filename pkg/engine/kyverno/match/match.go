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
	filters []*filter
	all     bool
}

// filter is one entry of a match block. All of its criteria must hold, and
// within a criterion that is a list, one item.
type filter struct {
	place       string // in its block, such as "any[0]"; empty for the flat form
	operations  []string
	kinds       []selector.Kind
	name        string
	names       []string
	namespaces  []string
	annotations map[string]string
	labels      *selector.Labels
	nsLabels    *selector.Labels
	subjects    []subject
	roles       []string
	clusterRole []string
}

// subject is a user, group or service account that a filter names.
type subject struct{ kind, namespace, name string }

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
	filter    *filter
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
	return Result{criterion: byPolicyNamespace, filter: &filter{namespaces: []string{ns}}}
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
		if !f.empty(true) {
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
func (f *filter) failsMatch(c *Candidate) (criterion, error) {
	withUser := !c.Request.User.Empty()
	if f.empty(withUser) {
		return byNothing, nil
	}
	return f.fails(c, withUser)
}

// Empty reports whether a match block lacks criteria, so that it matches nothing,
// where its author may have meant everything.
func (m *Block) Empty() bool { return len(m.selecting()) == 0 }

func (f *filter) empty(withUser bool) bool {
	object := len(f.operations) == 0 && len(f.kinds) == 0 && f.name == "" && len(f.names) == 0 &&
		len(f.namespaces) == 0 && len(f.annotations) == 0 && f.labels == nil && f.nsLabels == nil
	return object && (!withUser || len(f.subjects)+len(f.roles)+len(f.clusterRole) == 0)
}

// fails names the first criterion that does not hold.
func (f *filter) fails(c *Candidate, withUser bool) (criterion, error) {
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

func (f *filter) matchesAnnotations(c *Candidate) bool {
	return selector.Pairs(f.annotations, c.Object.GetAnnotations())
}

func (f *filter) failsObject(c *Candidate) criterion {
	name := c.name()
	switch {
	case len(f.kinds) > 0 && !f.matchesKind(c.Key):
		return byKind
	case f.name != "" && !selector.MatchWildcard(f.name, name):
		return byName
	case len(f.names) > 0 && !selector.AnyOf(f.names, name):
		return byNames
	case len(f.namespaces) > 0 && !selector.AnyOf(f.namespaces, NamespaceOf(c.Object)):
		return byNamespace
	case f.labels != nil && !f.labels.MatchesObject(c.Object):
		return bySelector
	case len(f.annotations) > 0 && !f.matchesAnnotations(c):
		return byAnnotations
	case len(f.operations) > 0 && !slices.Contains(f.operations, string(c.Operation)):
		return byOperation
	}
	return holds
}

func (f *filter) matchesKind(key engine.ObjectKey) bool {
	for _, kind := range f.kinds {
		if kind.Matches(key.GroupVersionKind(), key.Subresource) {
			return true
		}
	}
	return false
}

// failsNamespaceSelector judges the labels of the object's Namespace. It never
// holds for a Namespace itself, and for other objects without a namespace there
// are no labels, as in Kyverno.
func (f *filter) failsNamespaceSelector(c *Candidate) (criterion, error) {
	if f.nsLabels == nil {
		return holds, nil
	}
	if c.Object.GetKind() == "Namespace" {
		return byNamespaceSelector, nil
	}
	labels, err := c.NamespaceLabels(c.Context, c.World, f.nsLabels.Keys())
	if err != nil {
		return holds, &UndecidedError{Field: string(byNamespaceSelector), Reason: err.Error()}
	}
	if !f.nsLabels.Matches(labels) {
		return byNamespaceSelector, nil
	}
	return holds, nil
}

// failsUser judges the requesting user; roles, clusterRoles and subjects must
// each hold, whatever Kyverno's own comment says.
func (f *filter) failsUser(c *Candidate) (criterion, error) {
	if len(f.subjects) > 0 && !c.isOneOf(f.subjects) {
		return bySubjects, nil
	}
	if len(f.roles)+len(f.clusterRole) == 0 {
		return holds, nil
	}
	bound, err := rolesOf(c.Context, c.World, c.Request.User)
	switch {
	case err != nil:
		return holds, err
	case len(f.roles) > 0 && !overlap(f.roles, bound.roles):
		return byRoles, nil
	case len(f.clusterRole) > 0 && !overlap(f.clusterRole, bound.clusterRoles):
		return byClusterRoles, nil
	}
	return holds, nil
}

func (c *Candidate) isOneOf(subjects []subject) bool {
	user := c.Request.User
	for _, s := range subjects {
		switch s.kind {
		case "User":
			if selector.MatchWildcard(s.name, user.Username) {
				return true
			}
		case "ServiceAccount":
			if selector.MatchWildcard("system:serviceaccount:"+s.namespace+":"+s.name, user.Username) {
				return true
			}
		case "Group":
			for _, group := range user.Groups {
				if selector.MatchWildcard(s.name, group) {
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
