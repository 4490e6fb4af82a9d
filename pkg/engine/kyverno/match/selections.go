package match

import (
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// anyKind is the kind of a filter that names none.
var anyKind = selector.Kind{Group: "*", Version: "*", Kind: "*"} //nolint:gochecknoglobals // a constant

// Kinds lists the kinds that a block can match: of each filter or, if all must hold, of the first with kinds.
func (m *Block) Kinds() []selector.Kind {
	var out []selector.Kind
	for _, f := range m.filters {
		if m.all && len(f.Kinds) > 0 {
			return f.Kinds
		}
		out = append(out, f.kinds()...)
	}
	if m.all {
		return []selector.Kind{anyKind}
	}
	return out
}

func (f *Filter) kinds() []selector.Kind {
	if len(f.Kinds) == 0 {
		return []selector.Kind{anyKind}
	}
	return f.Kinds
}

// selecting lists the filters that together select everything that the block can match. A filter without
// criteria matches nothing.
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

// narrow adds the filter's criteria besides kinds to a selection, if it can express them. A nameless object
// matches by its generateName, so a name narrows only live objects.
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
		case s.Kind == "Namespace" && s.Name == "": // a Namespace is in itself
			s.Name = f.Namespaces[0]
		}
	}
	if f.Labels != nil {
		s.Labels = f.Labels.Exact()
	}
}

// Selections returns the objects that the block can match, in one namespace if it is given: by kinds, and by
// namespace, name and labels if a server can filter by them.
func (m *Block) Selections(namespace string) []engine.Selection {
	objects, _ := engine.SplitRequests(m.selections(namespace))
	return objects
}

// Requests returns the requests to subresources that the block can match.
func (m *Block) Requests(namespace string) []engine.Selection {
	_, requests := engine.SplitRequests(m.selections(namespace))
	return requests
}

func (m *Block) selections(namespace string) []engine.Selection {
	var out []engine.Selection
	for _, f := range m.selecting() {
		for _, kind := range f.kinds() {
			s := engine.Selection{
				Group: kind.Group, Version: kind.Version, Kind: kind.Kind,
				Subresource: kind.Subresource,
			}
			f.narrow(&s)
			if namespace != "" {
				s.Namespace = namespace
			}
			out = append(out, s)
		}
	}
	return out
}

// OnlySubresources reports whether the block can match only requests to subresources.
func (m *Block) OnlySubresources() bool {
	kinds := m.Kinds()
	return len(kinds) > 0 &&
		!slices.ContainsFunc(kinds,
			func(k selector.Kind) bool { return k.Subresource == "" || k.Subresource == "*" })
}

// AsksOperation reports whether the result can depend on the operation.
func (m *Block) AsksOperation() bool {
	return m != nil && slices.ContainsFunc(m.filters, func(f *Filter) bool { return len(f.Operations) > 0 })
}

// NamesDeletion reports whether the block names DELETE, without which the webhook is not called for
// deletions.
func (m *Block) NamesDeletion() bool {
	return slices.ContainsFunc(m.filters, func(f *Filter) bool {
		return slices.Contains(f.Operations, string(engine.OperationDelete))
	})
}

// Operations lists the operations to which the block is limited; none if a filter (or all, if all must hold)
// leaves them open.
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

// AsksRoles reports whether the role bindings of the requesting user matter.
func (m *Block) AsksRoles() bool {
	return m != nil && slices.ContainsFunc(m.filters,
		func(f *Filter) bool { return len(f.Roles)+len(f.ClusterRoles) > 0 })
}

// Where lists what the block asks for beyond its Operations and its Selections for the namespace: a string
// per criterion or, if one of several entries suffices, per entry.
func (m *Block) Where(namespace string) []string {
	var out []string
	selecting := m.selecting()
	for _, f := range m.filters {
		selects := slices.Contains(selecting, f)
		texts := f.texts(func(by int, wanted string) bool {
			return by != byOperation && !(selects && f.selects(by, wanted, namespace))
		})
		if !m.all && len(m.filters) > 1 && len(texts) > 0 {
			texts = []string{f.Place + ": " + strings.Join(texts, ", ")}
		}
		out = append(out, texts...)
	}
	return out
}

// Unless lists what the block excludes: a string per entry or, if all must hold, one.
func (m *Block) Unless() []string {
	if m == nil {
		return nil
	}
	var out []string
	for _, f := range m.filters {
		if text := f.String(); text != "" {
			out = append(out, text)
		}
	}
	if m.all && len(out) == len(m.filters) {
		out = []string{strings.Join(out, " and ")}
	} else if m.all {
		return nil // an entry without criteria never holds
	}
	for i := range out {
		out[i] = "unless " + out[i]
	}
	return out
}

// selects reports whether the filter's selections, for each kind, cover one of its criteria.
func (f *Filter) selects(by int, wanted, namespace string) bool {
	return by == byKind || by == bySelector && f.Labels.Exact() != nil ||
		!slices.ContainsFunc(f.kinds(), func(kind selector.Kind) bool {
			s := engine.Selection{Kind: kind.Kind}
			f.narrow(&s)
			switch by {
			case byName, byNames:
				return s.Name != wanted
			case byNamespace:
				return namespace != "" || s.Namespace != wanted && (s.Kind != "Namespace" || s.Name != wanted)
			}
			return true
		})
}
