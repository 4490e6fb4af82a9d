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

// selects reports whether the selections of a filter hold what a criterion of it wants.
func (f *Filter) selects(by int, wanted, namespace string) bool {
	switch by {
	case byKind:
		return true
	case byName, byNames:
		return f.selected(func(s engine.Selection) bool { return s.Name == wanted })
	case byNamespace:
		return namespace == "" && f.selected(func(s engine.Selection) bool {
			return s.Namespace == wanted || (s.Kind == "Namespace" && s.Name == wanted)
		})
	case bySelector:
		return f.Labels.Exact() != nil
	}
	return false
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
