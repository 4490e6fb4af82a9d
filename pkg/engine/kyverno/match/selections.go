package match

import (
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// anyKind is what a filter that names no kind matches.
var anyKind = selector.Kind{Group: "*", Version: "*", Kind: "*"} //nolint:gochecknoglobals // a constant

// Kinds lists the kinds that a block can match: those of each filter or, where
// all filters must hold, of the first that names any.
func (m *Block) Kinds() []selector.Kind {
	var out []selector.Kind
	for _, f := range m.filters {
		switch {
		case m.all && len(f.Kinds) > 0:
			return f.Kinds
		case m.all:
		case len(f.Kinds) == 0:
			out = append(out, anyKind)
		default:
			out = append(out, f.Kinds...)
		}
	}
	if m.all {
		return []selector.Kind{anyKind}
	}
	return out
}

// selecting lists the filters whose objects, taken together, are all that the
// block can match. A filter without criteria matches nothing.
func (m *Block) selecting() []*Filter {
	never := func(f *Filter) bool { return f.Empty() }
	switch {
	case !m.all:
		return slices.DeleteFunc(slices.Clone(m.filters), never)
	case slices.ContainsFunc(m.filters, never):
		return nil
	}
	for _, f := range m.filters {
		if len(f.Kinds) > 0 {
			return []*Filter{f}
		}
	}
	return m.filters[:min(1, len(m.filters))]
}

// narrow adds the filter's criteria beside kinds, as far as one selection can
// hold it. An object without a name is matched by its generateName, so that a
// name only narrows what has one: every live object.
func (f *Filter) narrow(s *engine.Selection) {
	switch {
	case len(f.Names) == 1:
		s.Name = f.Names[0]
	case len(f.Names) == 0:
		s.Name = f.Name
	}
	if len(f.Namespaces) == 1 {
		switch {
		case s.Kind != "Namespace" && !selector.MatchWildcard(s.Kind, "Namespace"):
			s.Namespace = f.Namespaces[0]
		case s.Kind == "Namespace" && s.Name == "": // a Namespace counts as its own
			s.Name = f.Namespaces[0]
		}
	}
	if f.Labels != nil {
		s.Labels = f.Labels.Exact()
	}
}

// Selections names the objects that the block can match, those of one namespace
// only where that is given: by kinds, and by namespace, name and labels where a
// server can tell them apart.
func (m *Block) Selections(namespace string) []engine.Selection {
	objects, _ := engine.SplitRequests(m.selections(namespace))
	return objects
}

// Requests names the requests to subresources that the block can match.
func (m *Block) Requests(namespace string) []engine.Selection {
	_, requests := engine.SplitRequests(m.selections(namespace))
	return requests
}

func (m *Block) selections(namespace string) []engine.Selection {
	var out []engine.Selection
	for _, f := range m.selecting() {
		kinds := f.Kinds
		if len(kinds) == 0 {
			kinds = []selector.Kind{anyKind}
		}
		for _, kind := range kinds {
			s := engine.Selection{Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Subresource: kind.Subresource}
			f.narrow(&s)
			if namespace != "" {
				s.Namespace = namespace
			}
			out = append(out, s)
		}
	}
	return out
}

// OnlySubresources reports whether nothing but requests to subresources can match.
func (m *Block) OnlySubresources() bool {
	kinds := m.Kinds()
	for _, kind := range kinds {
		if kind.Subresource == "" || kind.Subresource == "*" {
			return false
		}
	}
	return len(kinds) > 0
}

// AsksOperation reports whether the operation can decide whether the block holds.
func (m *Block) AsksOperation() bool {
	if m == nil {
		return false
	}
	for _, f := range m.filters {
		if len(f.Operations) > 0 {
			return true
		}
	}
	return false
}

// NamesDeletion reports whether the block asks for DELETE by name, without which
// the webhook is not called for deletions.
func (m *Block) NamesDeletion() bool {
	return slices.ContainsFunc(m.filters, func(f *Filter) bool {
		return slices.Contains(f.Operations, string(engine.OperationDelete))
	})
}

// Operations are those that the block is limited to, each once; none where some
// filter leaves them open, or all of several that must hold do.
func (m *Block) Operations() []engine.Operation {
	var out []engine.Operation
	for _, f := range m.filters {
		switch {
		case len(f.Operations) == 0 && (m.all || f.Empty()):
			continue
		case len(f.Operations) == 0:
			return nil
		}
		for _, o := range f.Operations {
			if !slices.Contains(out, engine.Operation(o)) {
				out = append(out, engine.Operation(o))
			}
		}
	}
	return out
}

// AsksRoles reports whether the role bindings of the requesting user count.
func (m *Block) AsksRoles() bool {
	return m != nil && slices.ContainsFunc(m.filters, func(f *Filter) bool { return len(f.Roles)+len(f.ClusterRoles) > 0 })
}
