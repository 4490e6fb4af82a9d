package strategicmerge

import "github.com/kubectl-mutate/kubectl-mutate/pkg/engine"

// Lists says how the lists of a kind merge.
type Lists struct{ root *place }

// NewLists returns what a schema says of the lists of a kind.
func NewLists(apiVersion, kind string, s engine.Schema) Lists {
	return Lists{newRoot(map[string]any{"apiVersion": apiVersion, "kind": kind}, s)}
}

// Keys returns the keys by which the list at a path merges, "[]" standing for the elements of a list on
// the way, and whether it merges at all: one that does not is replaced.
func (l Lists) Keys(path ...string) (keys []string, merges bool) {
	at := l.root
	for _, name := range path {
		if name == "[]" {
			at = at.element(0)
		} else {
			at = at.field(name)
		}
	}
	rule := at.listRule()
	return rule.keys, rule.merge
}
