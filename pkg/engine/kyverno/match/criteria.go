package match

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// criterion is a field of filters.
type criterion struct {
	name string
	// wanted is what a filter asks for; empty where it does not.
	wanted func(f *Filter) string
	// holds compares a candidate; it holds for a filter that does not ask.
	holds func(f *Filter, c *Candidate) (bool, error)
	// value is what the candidate has of the one value that is compared, or found what it has, with a verb.
	value func(c *Candidate) string
	found func(f *Filter, c *Candidate) string
}

// The places of the criteria in the order in which reasons are given: what
// the object is, then what it has, then what is done to it and by whom.
const (
	byKind = iota
	byName
	byNames
	byNamespace
	bySelector
	byAnnotations
	byNamespaceSelector
	byOperation
	bySubjects // this and those that follow are about the user
	byRoles
	byClusterRoles
)

//nolint:gochecknoglobals // immutable tables
var (
	criteria = [...]criterion{
		byKind: {
			name: "kinds", wanted: func(f *Filter) string { return joined(f.Kinds, selector.Kind.String) },
			holds: func(f *Filter, c *Candidate) (bool, error) { return len(f.Kinds) == 0 || f.matchesKind(c.Key), nil },
			value: func(c *Candidate) string { return kindOf(c).String() },
		},
		byName: {
			name: "name", wanted: func(f *Filter) string { return f.Name }, value: (*Candidate).name,
			holds: func(f *Filter, c *Candidate) (bool, error) {
				return f.Name == "" || selector.MatchWildcard(f.Name, c.name()), nil
			},
		},
		byNames: {
			name: "names", wanted: func(f *Filter) string { return strings.Join(f.Names, ", ") }, value: (*Candidate).name,
			holds: func(f *Filter, c *Candidate) (bool, error) { return anyOf(f.Names, c.name()), nil },
		},
		byNamespace: {
			name: "namespaces", wanted: wantedNamespaces, value: (*Candidate).namespace,
			holds: func(f *Filter, c *Candidate) (bool, error) { return anyOf(f.Namespaces, c.namespace()), nil },
		},
		bySelector: {
			name: "selector", wanted: func(f *Filter) string { return labelsText(f.Labels) },
			holds: func(f *Filter, c *Candidate) (bool, error) {
				return f.Labels == nil || f.Labels.Matches(c.Object.GetLabels()), nil
			},
			found: func(f *Filter, c *Candidate) string { return engine.FoundLabels(c.Object.GetLabels(), f.Labels) },
		},
		byAnnotations: {
			name: "annotations", wanted: func(f *Filter) string { return joinPairs(f.Annotations) },
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
		byOperation: {
			name: "operations", wanted: func(f *Filter) string { return strings.Join(f.Operations, ", ") },
			holds: func(f *Filter, c *Candidate) (bool, error) {
				return len(f.Operations) == 0 || slices.Contains(f.Operations, string(c.Operation)), nil
			},
			value: func(c *Candidate) string { return string(c.Operation) },
		},
		bySubjects: {
			name: "subjects", value: username,
			wanted: func(f *Filter) string {
				return joined(f.Subjects, func(s Subject) string { return s.Kind + " " + s.Name })
			},
			holds: func(f *Filter, c *Candidate) (bool, error) {
				return len(f.Subjects) == 0 || slices.ContainsFunc(f.Subjects, c.is), nil
			},
		},
		byRoles: {
			name: "roles", wanted: func(f *Filter) string { return strings.Join(f.Roles, ", ") }, value: username,
			holds: func(f *Filter, c *Candidate) (bool, error) {
				return c.isBound(f.Roles, func(r userRoles) []string { return r.roles })
			},
		},
		byClusterRoles: {
			name: "clusterRoles", wanted: func(f *Filter) string { return strings.Join(f.ClusterRoles, ", ") }, value: username,
			holds: func(f *Filter, c *Candidate) (bool, error) {
				return c.isBound(f.ClusterRoles, func(r userRoles) []string { return r.clusterRoles })
			},
		},
	}
	// described is the order in which a filter is described.
	described = [...]int{
		byOperation, byKind, byName, byNames, byNamespace, byAnnotations, bySelector, byNamespaceSelector, byRoles, byClusterRoles, bySubjects,
	}

	// What else keeps a rule from applying.
	byDeletion        = criterion{name: "a deletion only triggers rules with targets that name DELETE in operations"}
	byFilters         = criterion{name: "Kyverno's resourceFilters leave the object out"}
	byNothing         = criterion{name: "match cannot be empty"}
	byPolicyNamespace = criterion{name: "namespace of the Policy", wanted: wantedNamespaces, value: (*Candidate).namespace}
)

// rank is the place of a criterion among the others, what else keeps a rule from applying being first.
func (k *criterion) rank() int {
	for i := range criteria {
		if k == &criteria[i] {
			return i
		}
	}
	return -1
}

// mismatch says what a filter wants and what the candidate has.
func (k *criterion) mismatch(f *Filter, c *Candidate) engine.Mismatch {
	switch {
	case k.value != nil:
		return engine.NewMismatch(k.name, k.wanted(f), k.value(c))
	case k.found != nil:
		return engine.Mismatch{Criterion: k.name, Wanted: k.wanted(f), Found: k.found(f, c)}
	}
	return engine.Mismatch{Criterion: k.name}
}

func wantedNamespaces(f *Filter) string { return strings.Join(f.Namespaces, ", ") }

func (c *Candidate) namespace() string { return NamespaceOf(c.Object) }

func username(c *Candidate) string { return c.Request.User.Username }

func anyOf(patterns []string, name string) bool {
	return len(patterns) == 0 || selector.AnyOf(patterns, name)
}

func (f *Filter) matchesKind(key engine.ObjectKey) bool {
	return slices.ContainsFunc(f.Kinds, func(kind selector.Kind) bool { return kind.Matches(key.GroupVersionKind(), key.Subresource) })
}

// matchesNamespaceLabels judges the labels of the object's Namespace. It never
// holds for a Namespace itself, and for other objects without a namespace there
// are no labels, as in Kyverno.
func (f *Filter) matchesNamespaceLabels(c *Candidate) (bool, error) {
	if f.NamespaceLabels == nil || c.Object.GetKind() == "Namespace" {
		return f.NamespaceLabels == nil, nil
	}
	labels, err := c.NamespaceLabels(c.Context, c.World, f.NamespaceLabels.Keys())
	if err != nil {
		return false, &jmespath.UnsupportedError{Field: "namespaceSelector", Reason: err.Error()}
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

// isBound reports whether the requesting user has one of some roles; roles, clusterRoles and subjects must
// each hold, whatever Kyverno's own comment says.
func (c *Candidate) isBound(wanted []string, of func(userRoles) []string) (bool, error) {
	if len(wanted) == 0 {
		return true, nil
	}
	bound, err := rolesOf(c.Context, c.World, c.Request.User)
	has := of(bound)
	return slices.ContainsFunc(wanted, func(role string) bool { return slices.Contains(has, role) }), err
}

// is reports whether a subject is the requesting user, or one of the user's groups.
func (c *Candidate) is(s Subject) bool {
	user := c.Request.User
	switch s.Kind {
	case "User":
		return selector.MatchWildcard(s.Name, user.Username)
	case "ServiceAccount":
		return selector.MatchWildcard("system:serviceaccount:"+s.Namespace+":"+s.Name, user.Username)
	}
	return slices.ContainsFunc(user.Groups, func(group string) bool { return selector.MatchWildcard(s.Name, group) })
}

func kindOf(c *Candidate) selector.Kind {
	k := c.Key
	if k.Group == "" { // as people write the core group
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

func joined[T any](list []T, text func(T) string) string {
	out := make([]string, len(list))
	for i, item := range list {
		out[i] = text(item)
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

// mostEntries bounds the entries that an error lists.
const mostEntries = 3

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
	var parts []string
	for i, each := range missed[:min(len(missed), mostEntries)] {
		place := each.filter.Place
		if i == 0 && len(missed) > 1 && byRank(missed[0], missed[1]) > 0 {
			place += " comes nearest"
		}
		parts = append(parts, place+": "+each.failed.mismatch(each.filter, c).Error())
	}
	if more := len(missed) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more entries", more))
	}
	return errors.New(strings.Join(parts, "; "))
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
	var entries []string
	for _, f := range filters {
		text := f.String()
		if f.Place != "" {
			text = f.Place + ": " + text
		}
		entries = append(entries, text)
	}
	return errors.New("excluded by the rule's exclude block: " + strings.Join(entries, "; "))
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
