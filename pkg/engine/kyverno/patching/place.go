package patching

import (
	"fmt"
	"slices"
	"sync"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// Lists says how the lists of a kind merge. It is for all objects of the kind, and safe for concurrent use.
type Lists struct {
	engine.Schema
	types func() diff.Type
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

// place is where in the object the merge is.
type place struct {
	parent *place
	key    string // of a field
	index  int    // of a list element, whose key is empty
	lists  *Lists
	rule   *listRule // once it was asked for
}

func (p *place) field(key string) *place {
	return &place{parent: p, key: key, lists: p.lists}
}

func (p *place) element(i int) *place {
	return &place{parent: p, index: i, lists: p.lists}
}

// String returns the path as users write it: spec.containers[0].image.
func (p *place) String() string {
	if p == nil {
		return ""
	}
	before := p.parent.String()
	switch {
	case p.key == "" && p.parent == nil:
		return ""
	case p.key == "":
		return fmt.Sprintf("%s[%d]", before, p.index)
	case before == "":
		return p.key
	default:
		return before + "." + p.key
	}
}

// isLabels reports whether the map at this place holds labels or annotations,
// whose values the server only takes as strings.
func (p *place) isLabels() bool {
	return (p.key == "labels" || p.key == "annotations") && p.parent != nil && p.parent.key == "metadata"
}

// listRule is how the list at a place merges.
type listRule struct {
	merge  bool     // instead of being replaced
	keys   []string // of a list of maps that merges; empty where none are known
	known  bool     // the schema knows the field
	byType bool     // only because of the list type, which Kyverno does not look at
}

// listRule looks at the patch strategy first, as Kyverno does, and then at the
// schema's list type, which Kyverno does not know.
func (p *place) listRule() listRule {
	if p.rule == nil {
		p.rule = p.lookListRule()
	}
	return *p.rule
}

func (p *place) lookListRule() *listRule {
	var keys []string // of the schema's list type
	if atom, _ := p.typ().Atom(); atom.List != nil && atom.List.ElementRelationship == schema.Associative {
		keys = atom.List.Keys
	}
	rule := &listRule{known: len(keys) > 0}
	if p.lists.Fields != nil && p.key != "" {
		if strategies, key, known := p.lists.Fields.ListPatch(p.path()); known {
			rule.known = true
			rule.merge = slices.Contains(strategies, "merge")
			if rule.merge && key != "" {
				rule.keys = []string{key}
				if slices.Contains(keys, key) {
					rule.keys = keys
				}
				return rule
			}
		}
	}
	if len(keys) > 0 {
		rule.merge, rule.keys, rule.byType = true, keys, true
	}
	return rule
}

// path returns the keys that lead to the place, which are empty for elements of lists.
func (p *place) path() []string {
	if p.parent == nil {
		return nil
	}
	return append(p.parent.path(), p.key)
}

// typ is how the server types what is at this place.
func (p *place) typ() diff.Type {
	switch {
	case p.parent == nil:
		return p.lists.types()
	case p.key == "":
		return p.parent.typ().Element()
	}
	return p.parent.typ().Field(p.key)
}
