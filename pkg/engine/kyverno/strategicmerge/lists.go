package strategicmerge

import (
	"sync"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// Lists says how the lists of a kind merge. It looks each one up once, is for all objects of the kind, and
// safe for concurrent use.
type Lists struct {
	engine.Schema
	types func() diff.Type

	rules sync.Map // of listRule, by pattern of the path
}

// NewLists returns what a schema says of the lists of a kind. The zero schema says that each is replaced.
func NewLists(s engine.Schema, of apischema.GroupVersionKind) *Lists {
	return &Lists{Schema: s, types: sync.OnceValue(func() diff.Type { return diff.NewType(s.Types, of) })}
}

// Type returns how the server types objects of the kind.
func (l *Lists) Type() diff.Type { return l.types() }

// Keys returns the keys by which the list at a path merges, "[]" standing for the elements of a list on
// the way, and whether it merges at all: one that does not is replaced.
func (l *Lists) Keys(path ...string) (keys []string, merges bool) {
	at := l.root()
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

func (l *Lists) root() *place { return &place{lists: l} }

func (l *Lists) rule(at *place) listRule {
	pattern := string(at.appendPattern(nil))
	if known, ok := l.rules.Load(pattern); ok {
		return known.(listRule)
	}
	rule := at.lookListRule()
	l.rules.Store(pattern, rule)
	return rule
}
