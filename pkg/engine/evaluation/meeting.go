package evaluation

import (
	"iter"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// meeting finds those of many selections that may meet another one, as engine.Selection.MayMeet has it, without
// asking each of them.
type meeting struct {
	all []engine.Selection
	by  [2]map[string][]int // the places of those with a name, or else a namespace, without wildcards
	of  [3][]int            // of all with a name, with a namespace, and of the others
}

// nameParts are the parts by which a meeting knows a selection.
func nameParts(s *engine.Selection) [2]string { return [2]string{s.Name, s.Namespace} }

func isPlain(part string) bool { return part != "" && !selector.HasWildcard(part) }

func newMeeting(all []engine.Selection) *meeting {
	m := &meeting{all: all, by: [2]map[string][]int{{}, {}}}
	for i := range all {
		parts := nameParts(&all[i])
		part := slices.IndexFunc(parts[:], isPlain)
		if part < 0 {
			part = len(parts)
		} else {
			m.by[part][parts[part]] = append(m.by[part][parts[part]], i)
		}
		m.of[part] = append(m.of[part], i)
	}
	return m
}

// places yields the places of those that may meet a selection, in no order.
func (m *meeting) places(s engine.Selection) iter.Seq[int] {
	return func(yield func(int) bool) {
		parts := nameParts(&s)
		for part, found := range m.of {
			if part < len(parts) && isPlain(parts[part]) {
				found = m.by[part][parts[part]]
			}
			for _, i := range found {
				if m.all[i].MayMeet(s) && !yield(i) {
					return
				}
			}
		}
	}
}

// meets reports whether one of them may meet a selection.
func (m *meeting) meets(s engine.Selection) bool {
	for range m.places(s) {
		return true
	}
	return false
}

// with returns those that may meet a selection, in their order.
func (m *meeting) with(s engine.Selection) []engine.Selection {
	var out []engine.Selection
	for _, i := range slices.Sorted(m.places(s)) {
		out = append(out, m.all[i])
	}
	return out
}

// withoutLabels are the selections without their labels, each once.
func withoutLabels(all []engine.Selection) []engine.Selection {
	var out []engine.Selection
	known := map[engine.Selection]bool{}
	for _, s := range all {
		if s.Labels = nil; !known[s] {
			known[s] = true
			out = append(out, s)
		}
	}
	return out
}
