package gatekeeper

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/gatekeeper/match"
)

// selections says what the mutator matches, without repeating itself. Labels do
// not narrow it: it may match only what another one made of the object,
// but then that other one matches the object as it is.
func (m *mutator) selections() []engine.Selection {
	var out engine.SelectionSet
	if m.criteria.Source != match.Generated {
		for _, gvk := range m.types() {
			out.Add(m.narrowed(gvk)...)
		}
	}
	return out.All
}

// types are the types that the mutator may match; parts may be "*".
func (m *mutator) types() []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	if m.criteria.ApplyTo != nil {
		for i := range m.criteria.ApplyTo {
			for _, gvk := range typesOf(&m.criteria.ApplyTo[i]) {
				literal := !strings.Contains(gvk.Group+gvk.Version+gvk.Kind, "*")
				if literal && m.coversKind(gvk.GroupKind()) {
					out = append(out, gvk)
				}
			}
		}
		return out
	}
	if len(m.criteria.Kinds) == 0 {
		return []schema.GroupVersionKind{{Group: "*", Kind: "*"}}
	}
	combinations := 0
	for _, k := range m.criteria.Kinds {
		combinations += len(orAny(k.APIGroups)) * len(orAny(k.Kinds))
	}
	if combinations*max(1, len(m.criteria.Namespaces)) > maxTypes { // what matches is compared again
		return []schema.GroupVersionKind{{Group: "*", Kind: "*"}}
	}
	for _, k := range m.criteria.Kinds {
		for _, group := range orAny(k.APIGroups) {
			for _, kind := range orAny(k.Kinds) {
				out = append(out, schema.GroupVersionKind{Group: group, Kind: kind})
			}
		}
	}
	return out
}

func (m *mutator) coversKind(gk schema.GroupKind) bool {
	return len(m.criteria.Kinds) == 0 || slices.ContainsFunc(m.criteria.Kinds, func(k match.Kinds) bool { return k.Covers(gk) })
}

func orAny(list []string) []string {
	if len(list) == 0 || slices.Contains(list, "*") {
		return []string{"*"}
	}
	return list
}

// narrowed selects a type in the namespaces, and by the name, that the mutator
// matches. A Namespace counts as being in itself.
func (m *mutator) narrowed(gvk schema.GroupVersionKind) []engine.Selection {
	s := engine.Selection{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
	if name := m.criteria.Name; !strings.Contains(name, "*") {
		s.Name = name
	}
	if len(m.criteria.Namespaces) == 0 {
		return []engine.Selection{s}
	}
	var out []engine.Selection
	for _, ns := range m.criteria.Namespaces {
		if gvk.Kind != "Namespace" {
			inside := s
			inside.Namespace = ns
			out = append(out, inside)
		}
		if (gvk.Kind == "Namespace" || gvk.Kind == "*") && (gvk.Group == "" || gvk.Group == "*") {
			out = append(out, engine.Selection{Version: gvk.Version, Kind: "Namespace", Name: ns})
		}
	}
	return out
}
