package match

import (
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Explain says why a result of Match, for the same candidate, does not apply.
func (m *Criteria) Explain(r Result, c *Candidate) engine.Mismatch {
	wanted, found := m.wantedAndFound(r.criterion, c)
	return engine.NewMismatch(string(r.criterion), wanted, found)
}

func (m *Criteria) wantedAndFound(by criterion, c *Candidate) (wanted, found string) {
	switch by {
	case byType:
		return m.types(), typeText(c.Key.Group, c.Key.Version, c.Key.Kind)
	case byOperation:
		return m.operations(c), string(c.Operation)
	case byKinds:
		return m.kindTexts(), typeText(c.Key.Group, "", c.Key.Kind)
	case byScope:
		if m.Scope == Cluster {
			return Cluster, Namespaced
		}
		return Namespaced, Cluster
	case byNamespaces:
		return strings.Join(m.Namespaces, ", "), c.namespace()
	case byExcluded:
		return "none of " + strings.Join(m.ExcludedNamespaces, ", "), c.namespace()
	case byLabels:
		return m.Labels.String(), labelsOf(c.Object).String()
	case byNamespaceSelector:
		return m.NamespaceLabels.String(), m.namespacePairs(c)
	case byName:
		return m.Name, c.Key.Name
	case bySource:
		return m.Source, "Original"
	case none:
	}
	return "", ""
}

func (m *Criteria) namespacePairs(c *Candidate) string {
	switch {
	case c.isNamespace():
		return labelsOf(c.Object).String()
	case c.Key.Namespace == "":
		return ""
	case c.Namespace == nil:
		return labelsOf(engine.BareNamespace(c.Key.Namespace).Object).String()
	}
	return labelsOf(c.Namespace.Object).String()
}

// types are the types of applyTo, each of its combinations in short.
func (m *Criteria) types() string {
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

func (m *Criteria) kindTexts() string {
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
