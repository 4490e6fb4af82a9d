package match

import (
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

const namespaceSelector = "namespaceSelector"

// criterion is one that a candidate meets or not, and how a Mismatch words it.
type criterion struct {
	name          string
	holds         func(*Criteria, *Candidate) bool
	wanted, found func(*Criteria, *Candidate) string
}

// criteria are in the order in which Gatekeeper looks at them.
//
//nolint:gochecknoglobals // an immutable table
var criteria = [...]criterion{
	{
		"applyTo", (*Criteria).applies, (*Criteria).types,
		func(_ *Criteria, c *Candidate) string { return typeText(c.Key.Group, c.Key.Version, c.Key.Kind) },
	},
	{
		"applyTo.operations", (*Criteria).does, (*Criteria).operations,
		func(_ *Criteria, c *Candidate) string { return string(c.Operation) },
	},
	{"kinds", func(m *Criteria, c *Candidate) bool { return m.CoversKind(c.Key.GroupKind) }, (*Criteria).kindTexts, func(_ *Criteria, c *Candidate) string { return typeText(c.Key.Group, "", c.Key.Kind) }},
	{
		"scope", (*Criteria).scope, func(m *Criteria, _ *Candidate) string { return m.Scope },
		(*Criteria).otherScope,
	},
	{"namespaces", (*Criteria).namespaces, func(m *Criteria, _ *Candidate) string { return strings.Join(m.Namespaces, ", ") }, (*Criteria).namespace},
	{"excludedNamespaces", (*Criteria).excluded, func(m *Criteria, _ *Candidate) string { return "none of " + strings.Join(m.ExcludedNamespaces, ", ") }, (*Criteria).namespace},
	{
		"labelSelector", (*Criteria).labels, func(m *Criteria, _ *Candidate) string { return m.Labels.String() },
		func(_ *Criteria, c *Candidate) string { return labelsOf(c.Object).String() },
	},
	{
		namespaceSelector, (*Criteria).namespaceLabels,
		func(m *Criteria, _ *Candidate) string { return m.NamespaceLabels.String() }, (*Criteria).namespacePairs,
	},
	{
		"name", (*Criteria).name, func(m *Criteria, _ *Candidate) string { return m.Name },
		func(_ *Criteria, c *Candidate) string { return c.Key.Name },
	},
	{"source", (*Criteria).from, func(m *Criteria, _ *Candidate) string { return m.Source }, (*Criteria).source},
}

// Explain says why a result of Match, for the same candidate, does not apply.
func (m *Criteria) Explain(r Result, c *Candidate) engine.Mismatch {
	return engine.NewMismatch(r.unmet.name, r.unmet.wanted(m, c), r.unmet.found(m, c))
}

func (m *Criteria) otherScope(*Candidate) string {
	if m.Scope == Cluster {
		return Namespaced
	}
	return Cluster
}

func (m *Criteria) namespace(c *Candidate) string { return c.namespace() }

func (m *Criteria) namespacePairs(c *Candidate) string {
	if c.namespace() == "" {
		return ""
	}
	return labelsOf(c.selected().Object).String()
}

// types are the types of applyTo, each of its combinations in short.
func (m *Criteria) types(*Candidate) string {
	out := make([]string, len(m.ApplyTo))
	for i := range m.ApplyTo {
		a := &m.ApplyTo[i]
		out[i] = typeText(strings.Join(a.Groups, "|"), strings.Join(a.Versions, "|"), strings.Join(a.Kinds, "|"))
	}
	return strings.Join(out, ", ")
}

func (m *Criteria) operations(c *Candidate) string {
	var out []string
	for i := range m.ApplyTo {
		if m.ApplyTo[i].Covers(c.Key.GroupVersionKind()) {
			out = append(out, m.ApplyTo[i].Operations...)
		}
	}
	if len(out) == 0 {
		return "CREATE, UPDATE"
	}
	return strings.Join(out, ", ")
}

func (m *Criteria) kindTexts(*Candidate) string {
	var out []string
	for _, k := range m.Kinds {
		groups, kinds := strings.Join(k.APIGroups, "|"), strings.Join(k.Kinds, "|")
		if kinds == "" {
			kinds = "*"
		}
		out = append(out, typeText(groups, "", kinds))
	}
	return strings.Join(out, ", ")
}

// typeText is like "apps/v1/Deployment"; parts that are empty are left out.
func typeText(parts ...string) string {
	parts = slices.DeleteFunc(slices.Clone(parts), func(s string) bool { return s == "" })
	return strings.Join(parts, "/")
}
