package match

import "strings"

// Where lists the criteria that are about more than types, operations, plain names
// and namespaces.
func (m *Criteria) Where() []string {
	var out []string
	if m.Scope == Namespaced || m.Scope == Cluster {
		out = append(out, "scope: "+m.Scope)
	}
	if len(m.ExcludedNamespaces) > 0 {
		out = append(out, "unless in namespaces: "+strings.Join(m.ExcludedNamespaces, ", "))
	}
	if m.Labels != nil && !m.Labels.Empty() {
		out = append(out, "labelSelector: "+m.Labels.String())
	}
	if m.NamespaceLabels != nil && !m.NamespaceLabels.Empty() {
		out = append(out, "namespaceSelector: "+m.NamespaceLabels.String())
	}
	if strings.Contains(m.Name, "*") {
		out = append(out, "name: "+m.Name)
	}
	if m.Source == Generated {
		out = append(out, "source: "+m.Source)
	}
	return out
}
