package gatekeeper

import (
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

const namespaceSelector = "namespaceSelector"

// criterion is a condition on a candidate, and its wording in a Mismatch.
type criterion struct {
	name          string
	holds         func(*criteria, *candidate) bool
	wanted, found func(*criteria, *candidate) string
}

// matchOrder has the criteria in Gatekeeper's order.
//
//nolint:gochecknoglobals // an immutable table
var matchOrder = [...]criterion{
	{
		"applyTo", (*criteria).applies, (*criteria).types,
		func(_ *criteria, c *candidate) string { return typeText(c.Key.Group, c.Key.Version, c.Key.Kind) },
	},
	{
		"applyTo.operations", (*criteria).does, (*criteria).operations,
		func(_ *criteria, c *candidate) string { return string(c.Operation) },
	},
	{"kinds", func(m *criteria, c *candidate) bool { return m.coversKind(c.Key.GroupKind) }, (*criteria).kindTexts, func(_ *criteria, c *candidate) string { return typeText(c.Key.Group, "", c.Key.Kind) }},
	{
		"scope", (*criteria).scope, func(m *criteria, _ *candidate) string { return m.Scope },
		(*criteria).otherScope,
	},
	{"namespaces", (*criteria).namespaces, func(m *criteria, _ *candidate) string { return strings.Join(m.Namespaces, ", ") }, (*criteria).namespace},
	{"excludedNamespaces", (*criteria).excluded, func(m *criteria, _ *candidate) string { return "none of " + strings.Join(m.ExcludedNamespaces, ", ") }, (*criteria).namespace},
	{
		"labelSelector", (*criteria).labels, func(m *criteria, _ *candidate) string { return m.Labels.String() },
		func(_ *criteria, c *candidate) string { return labelsOf(c.Object).String() },
	},
	{
		namespaceSelector, (*criteria).namespaceLabels,
		func(m *criteria, _ *candidate) string { return m.NamespaceLabels.String() }, (*criteria).namespacePairs,
	},
	{
		"name", (*criteria).name, func(m *criteria, _ *candidate) string { return m.Name },
		func(_ *criteria, c *candidate) string { return c.Key.Name },
	},
	{"source", (*criteria).from, func(m *criteria, _ *candidate) string { return m.Source }, (*criteria).source},
}

// explain returns why a mutator does not apply to a candidate, given the unmet criterion.
func (m *criteria) explain(unmet *criterion, c *candidate) engine.Mismatch {
	return engine.NewMismatch(unmet.name, unmet.wanted(m, c), unmet.found(m, c))
}

func (m *criteria) otherScope(*candidate) string {
	if m.Scope == scopeCluster {
		return scopeNamespaced
	}
	return scopeCluster
}

func (m *criteria) namespace(c *candidate) string { return c.namespace() }

func (m *criteria) namespacePairs(c *candidate) string {
	if c.namespace() == "" {
		return ""
	}
	return labelsOf(c.selected().Object).String()
}

// types returns the types of applyTo, each combination in short form.
func (m *criteria) types(*candidate) string {
	out := make([]string, len(m.ApplyTo))
	for i := range m.ApplyTo {
		a := &m.ApplyTo[i]
		out[i] = typeText(strings.Join(a.Groups, "|"), strings.Join(a.Versions, "|"), strings.Join(a.Kinds, "|"))
	}
	return strings.Join(out, ", ")
}

func (m *criteria) operations(c *candidate) string {
	var out []string
	for i := range m.ApplyTo {
		if m.ApplyTo[i].covers(c.Key.GroupVersionKind()) {
			out = append(out, m.ApplyTo[i].Operations...)
		}
	}
	if len(out) == 0 {
		return "CREATE, UPDATE"
	}
	return strings.Join(out, ", ")
}

func (m *criteria) kindTexts(*candidate) string {
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

// typeText is like "apps/v1/Deployment", without empty parts.
func typeText(parts ...string) string {
	parts = slices.DeleteFunc(slices.Clone(parts), func(s string) bool { return s == "" })
	return strings.Join(parts, "/")
}
