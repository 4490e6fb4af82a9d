package match

import (
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Where lists what the block asks for beside what its Operations, and its
// Selections for the same namespace, say: a text for each criterion or, where one
// of several entries is enough, for each entry.
func (m *Block) Where(namespace string) []string {
	var out []string
	selecting := m.selecting()
	for _, f := range m.filters {
		demands := f.demands()
		if slices.Contains(selecting, f) {
			demands = f.unselected(namespace)
		}
		demands = slices.DeleteFunc(demands, func(d demand) bool { return d.criterion == byOperation })
		var texts []string
		for _, d := range demands {
			texts = append(texts, d.String())
		}
		if !m.all && len(m.filters) > 1 && len(texts) > 0 {
			texts = []string{f.Place + ": " + strings.Join(texts, ", ")}
		}
		out = append(out, texts...)
	}
	return out
}

// Unless lists what the block excludes: a text for each entry or, where all of them
// must hold, one.
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

// unselected are the demands of a filter that its selections do not hold.
func (f *Filter) unselected(namespace string) []demand {
	return slices.DeleteFunc(f.demands(), func(d demand) bool {
		switch d.criterion {
		case byKind:
			return true
		case byName, byNames:
			return f.selected(func(s engine.Selection) bool { return s.Name == d.wanted })
		case byNamespace:
			return namespace == "" && f.selected(func(s engine.Selection) bool {
				return s.Namespace == d.wanted || (s.Kind == "Namespace" && s.Name == d.wanted)
			})
		case bySelector:
			return f.Labels.Exact() != nil
		}
		return false
	})
}

// selected reports whether something holds of the selections of all kinds.
func (f *Filter) selected(holds func(engine.Selection) bool) bool {
	kinds := f.Kinds
	if len(kinds) == 0 {
		kinds = []selector.Kind{anyKind}
	}
	return !slices.ContainsFunc(kinds, func(kind selector.Kind) bool {
		s := engine.Selection{Kind: kind.Kind}
		f.narrow(&s)
		return !holds(s)
	})
}
