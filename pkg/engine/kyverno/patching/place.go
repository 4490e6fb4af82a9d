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

// Lists says how the lists of a kind merge. It serves all objects of the kind and is safe for concurrent use.
type Lists struct {
	engine.Schema
	types func() diff.Type
}

// NewLists returns the merge rules of a kind's schema. With the zero schema, lists are replaced.
func NewLists(s engine.Schema, of apischema.GroupVersionKind) *Lists {
	return &Lists{Schema: s, types: sync.OnceValue(func() diff.Type { return diff.NewType(s.Types, of) })}
}

// Type returns the server's type of the kind.
func (l *Lists) Type() diff.Type { return l.types() }

// Keys returns the merge keys of the list at a path, with "[]" for elements on the way, and whether it
// merges; else it is replaced.
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

type place struct {
	parent *place
	key    string // of a field
	index  int    // of a list element, whose key is empty
	lists  *Lists
	rule   *listRule // nil until it is needed
}

func (p *place) field(key string) *place {
	return &place{parent: p, key: key, lists: p.lists}
}

func (p *place) element(i int) *place {
	return &place{parent: p, index: i, lists: p.lists}
}

// String returns the path in the users' notation: spec.containers[0].image.
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

// isLabels reports whether the map at this place holds labels or annotations, whose values must be strings.
func (p *place) isLabels() bool {
	return (p.key == "labels" || p.key == "annotations") && p.parent != nil && p.parent.key == "metadata"
}

// listRule says how a list merges.
type listRule struct {
	merge  bool     // instead of being replaced
	keys   []string // of a list of maps; empty if unknown
	known  bool     // the schema has the field
	byType bool     // only by the list type, which Kyverno ignores
}

// listRule uses the patch strategy, as Kyverno does, and else the schema's list type, which Kyverno ignores.
func (p *place) listRule() listRule {
	if p.rule == nil {
		p.rule = p.lookListRule()
	}
	return *p.rule
}

func (p *place) lookListRule() *listRule {
	var keys []string // from the schema's list type
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

// path returns the keys of the place; they are empty for list elements.
func (p *place) path() []string {
	if p.parent == nil {
		return nil
	}
	return append(p.parent.path(), p.key)
}

// typ returns the server's type at this place.
func (p *place) typ() diff.Type {
	switch {
	case p.parent == nil:
		return p.lists.types()
	case p.key == "":
		return p.parent.typ().Element()
	}
	return p.parent.typ().Field(p.key)
}
