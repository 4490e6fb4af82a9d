package match

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

type criterion struct {
	name string
	// wanted returns the filter's value; empty if it does not ask.
	wanted func(f *Filter) string
	// holds compares a candidate; it holds if the filter does not ask.
	holds func(f *Filter, c *Candidate) (bool, error)
	// value returns the compared value of the candidate; without it, found returns a clause with a verb.
	value func(c *Candidate) string
	found func(f *Filter, c *Candidate) string
}

// The criteria, in the order in which reasons are given: identity of the object, its content, the operation
// and the user.
const (
	byNothing = iota - 1 // a filter without criteria
	byKind
	byName
	byNames
	byNamespace
	bySelector
	byAnnotations
	byNamespaceSelector
	byOperation
	bySubjects // this and later ones are about the user
	byRoles
	byClusterRoles
	allHold // all criteria hold
)

// oneOf is a criterion that lists patterns for one value of the candidate.
func oneOf(name string, patterns func(f *Filter) []string, value func(c *Candidate) string) criterion {
	return criterion{
		name: name, value: value, wanted: func(f *Filter) string { return strings.Join(patterns(f), ", ") },
		holds: func(f *Filter, c *Candidate) (bool, error) {
			list := patterns(f)
			return len(list) == 0 || selector.AnyOf(list, value(c)), nil
		},
	}
}

// boundTo is a criterion that lists roles of the requesting user; roles, clusterRoles and subjects must each
// hold, despite Kyverno's own comment.
func boundTo(name string, wanted func(f *Filter) []string, of func(userRoles) []string) criterion {
	k := oneOf(name, wanted, username)
	k.holds = func(f *Filter, c *Candidate) (bool, error) {
		if len(wanted(f)) == 0 {
			return true, nil
		}
		roles, err := rolesOf(c.Context, c.World, c.Request.User)
		return slices.ContainsFunc(wanted(f), func(role string) bool { return slices.Contains(of(roles), role) }),
			err
	}
	return k
}

//nolint:gochecknoglobals // immutable tables
var (
	criteria = [...]criterion{
		byKind: {
			name: "kinds", wanted: func(f *Filter) string { return joined(f.Kinds, selector.Kind.String) },
			holds: func(f *Filter, c *Candidate) (bool, error) {
				return len(f.Kinds) == 0 || slices.ContainsFunc(f.Kinds, func(kind selector.Kind) bool {
					return kind.Matches(c.Key.GroupVersionKind(), c.Key.Subresource)
				}), nil
			},
			value: func(c *Candidate) string { return kindOf(c).String() },
		},
		byName: {
			name: "name", wanted: func(f *Filter) string { return f.Name }, value: (*Candidate).name,
			holds: func(f *Filter, c *Candidate) (bool, error) {
				return f.Name == "" || selector.MatchWildcard(f.Name, c.name()), nil
			},
		},
		byNames: oneOf("names", func(f *Filter) []string { return f.Names }, (*Candidate).name),
		byNamespace: oneOf("namespaces", func(f *Filter) []string { return f.Namespaces },
			func(c *Candidate) string { return NamespaceOf(c.Object) }),
		bySelector: {
			name: "selector", wanted: func(f *Filter) string { return labelsText(f.Labels) },
			holds: func(f *Filter, c *Candidate) (bool, error) {
				return f.Labels == nil || f.Labels.Matches(c.Object.GetLabels()), nil
			},
			found: func(f *Filter, c *Candidate) string { return engine.FoundLabels(c.Object.GetLabels(), f.Labels) },
		},
		byAnnotations: {
			name: "annotations", wanted: func(f *Filter) string { return labels.Set(f.Annotations).String() },
			holds: func(f *Filter, c *Candidate) (bool, error) {
				return len(f.Annotations) == 0 || selector.Pairs(f.Annotations, c.Object.GetAnnotations()), nil
			},
			found: func(f *Filter, c *Candidate) string {
				return engine.FoundAnnotations(c.Object.GetAnnotations(), f.Annotations)
			},
		},
		byNamespaceSelector: {
			name: "namespaceSelector", wanted: func(f *Filter) string { return labelsText(f.NamespaceLabels) },
			holds: (*Filter).matchesNamespaceLabels, found: (*Filter).seenOfNamespace,
		},
		byOperation: oneOf("operations", func(f *Filter) []string { return f.Operations },
			func(c *Candidate) string { return string(c.Operation) }),
		bySubjects: {
			name: "subjects", value: username,
			wanted: func(f *Filter) string {
				return joined(f.Subjects, func(s Subject) string { return s.Kind + " " + s.Name })
			},
			holds: func(f *Filter, c *Candidate) (bool, error) {
				return len(f.Subjects) == 0 || slices.ContainsFunc(f.Subjects, c.isRequester), nil
			},
		},
		byRoles: boundTo("roles", func(f *Filter) []string { return f.Roles },
			func(r userRoles) []string { return r.roles }),
		byClusterRoles: boundTo("clusterRoles", func(f *Filter) []string { return f.ClusterRoles },
			func(r userRoles) []string { return r.clusterRoles }),
	}
	// described is the order of criteria in a filter's description.
	described = [...]int{
		byOperation, byKind, byName, byNames, byNamespace, byAnnotations, bySelector, byNamespaceSelector, byRoles,
		byClusterRoles, bySubjects,
	}
)

// miss is an unmet filter with the failing criterion.
type miss struct {
	*Filter
	by int
}

func (m miss) mismatch(c *Candidate) engine.Mismatch {
	if m.by == byNothing {
		return engine.Mismatch{Criterion: "match cannot be empty"}
	}
	k := criteria[m.by]
	if k.value != nil {
		return engine.NewMismatch(k.name, k.wanted(m.Filter), k.value(c))
	}
	return engine.Mismatch{Criterion: k.name, Wanted: k.wanted(m.Filter), Found: k.found(m.Filter, c)}
}

func username(c *Candidate) string { return c.Request.User.Username }

// matchesNamespaceLabels checks the labels of the object's Namespace. As in Kyverno, it never holds for a
// Namespace itself, and other cluster-scoped objects have no labels there.
func (f *Filter) matchesNamespaceLabels(c *Candidate) (bool, error) {
	if f.NamespaceLabels == nil || c.Object.GetKind() == "Namespace" {
		return f.NamespaceLabels == nil, nil
	}
	labels, err := c.NamespaceLabels(c.Context, c.World, f.NamespaceLabels.Keys())
	if err != nil {
		return false, &engine.UnsupportedError{Field: "namespaceSelector", Err: err}
	}
	return f.NamespaceLabels.Matches(labels), nil
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

// isRequester reports whether a subject is the requesting user or one of the user's groups.
func (c *Candidate) isRequester(s Subject) bool {
	user := c.Request.User
	switch s.Kind {
	case "User":
		return selector.MatchWildcard(s.Name, user.Username)
	case "ServiceAccount":
		return selector.MatchWildcard("system:serviceaccount:"+s.Namespace+":"+s.Name, user.Username)
	}
	return slices.ContainsFunc(user.Groups,
		func(group string) bool { return selector.MatchWildcard(s.Name, group) })
}

func kindOf(c *Candidate) selector.Kind {
	k := c.Key
	if k.Group == "" { // the common form of the core group
		k.Group = "*"
	}
	return selector.Kind{Group: k.Group, Version: k.Version, Kind: k.Kind, Subresource: k.Subresource}
}

func labelsText(labels *selector.Labels) string {
	if labels == nil {
		return ""
	}
	return labels.String()
}

func joined[T any](list []T, text func(T) string) string { return joinedBy(", ", list, text) }

func joinedBy[T any](separator string, list []T, text func(T) string) string {
	out := make([]string, len(list))
	for i, item := range list {
		out[i] = text(item)
	}
	return strings.Join(out, separator)
}

const mostEntries = 3

// explain returns why the block does not hold, given its unmet filters.
func (m *Block) explain(c *Candidate, missed []miss) error {
	switch {
	case m.all:
		least := slices.MinFunc(missed, byRank)
		failed := least.mismatch(c)
		failed.Criterion = least.Place + ": " + failed.Criterion
		return failed
	case len(missed) == 1:
		return missed[0].mismatch(c)
	}
	slices.SortStableFunc(missed, func(a, b miss) int { return byRank(b, a) })
	var parts []string
	for i, each := range missed[:min(len(missed), mostEntries)] {
		place := each.Place
		if i == 0 && byRank(missed[0], missed[1]) > 0 {
			place += " comes nearest"
		}
		parts = append(parts, place+": "+each.mismatch(c).Error())
	}
	if more := len(missed) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more entries", more))
	}
	return errors.New(strings.Join(parts, "; "))
}

// byRank compares how many criteria of two filters hold before one fails.
func byRank(a, b miss) int { return a.by - b.by }

// exclusion describes the entry that excludes; all entries if they decide together.
func (m *Block) exclusion(f *Filter) error {
	filters := []*Filter{f}
	if m.all {
		filters = m.filters
	}
	return errors.New("excluded by the rule's exclude block: " + joinedBy("; ", filters, func(f *Filter) string {
		return strings.TrimPrefix(f.Place+": "+f.String(), ": ")
	}))
}

// String lists the criteria of a filter with their values.
func (f *Filter) String() string {
	return strings.Join(f.texts(func(int, string) bool { return true }), ", ")
}

// texts lists the filter's wanted criteria, like "kinds: Pod, Deployment".
func (f *Filter) texts(keep func(by int, wanted string) bool) []string {
	var out []string
	for _, by := range described {
		if wanted := criteria[by].wanted(f); wanted != "" && keep(by, wanted) {
			out = append(out, criteria[by].name+": "+wanted)
		}
	}
	return out
}
