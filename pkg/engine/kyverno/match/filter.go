package match

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Filter is one entry of a match or exclude block, as its document has it.
type Filter struct {
	Place                   string // in its block, such as "any[0]"; empty for the flat form
	Operations              []string
	Kinds                   []selector.Kind
	Name                    string
	Names, Namespaces       []string
	Annotations             map[string]string
	Labels, NamespaceLabels *metav1.LabelSelector
	Subjects                []Subject
	Roles, ClusterRoles     []string
}

// Subject is a user, group or service account that a filter names.
type Subject struct{ Kind, Namespace, Name string }

// Empty reports whether the filter asks for nothing.
func (f *Filter) Empty() bool {
	return len(f.Operations)+len(f.Kinds)+len(f.Names)+len(f.Namespaces)+len(f.Annotations)+
		len(f.Subjects)+len(f.Roles)+len(f.ClusterRoles) == 0 && f.Name == "" && f.Labels == nil && f.NamespaceLabels == nil
}

// Filters returns the filters of a block that are not empty, and whether all of them have to hold, where otherwise one does.
// There are none where no object meets the block: an empty one is met by nothing.
func (m *Block) Filters() (filters []Filter, all bool) {
	for _, f := range m.filters {
		out := Filter{
			Place: f.place, Operations: slices.Clone(f.operations), Kinds: f.kinds, Name: f.name, Names: f.names,
			Namespaces: f.namespaces, Annotations: f.annotations, Labels: f.labels.Written(), NamespaceLabels: f.nsLabels.Written(),
			Roles: f.roles, ClusterRoles: f.clusterRole,
		}
		for _, s := range f.subjects {
			out.Subjects = append(out.Subjects, Subject{s.kind, s.namespace, s.name})
		}
		switch {
		case !out.Empty():
			filters = append(filters, out)
		case m.all: // which nothing meets
			return nil, true
		}
	}
	return filters, m.all
}
