package patching

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// Lists says how the lists of a kind merge. It serves all objects of the kind and is safe for concurrent use.
type Lists struct {
	engine.Schema
	// Type returns the server's type of the kind.
	Type  func() diff.Type
	rules func(path string) (*listRule, error)
}

// NewLists returns the merge rules of a kind's schema. With the zero schema, lists are replaced.
func NewLists(s engine.Schema, of apischema.GroupVersionKind) *Lists {
	l := &Lists{Schema: s, Type: sync.OnceValue(func() diff.Type { return diff.NewType(s.Types, of) })}
	l.rules = engine.Cached(l.rule)
	return l
}

// Keys returns the merge keys of the list at a path, with "[]" for elements on the way, and whether it
// merges; else it is replaced.
func (l *Lists) Keys(path ...string) (keys []string, merges bool) {
	rule, _ := l.rules(strings.ReplaceAll(strings.Join(path, separator), "[]", ""))
	return rule.keys, rule.merge
}

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
		p.rule, _ = p.lists.rules(strings.Join(p.path(), separator))
	}
	return *p.rule
}

// separator is between the keys of a path.
const separator = "\x00"

func (l *Lists) rule(joined string) (*listRule, error) {
	path, typ := strings.Split(joined, separator), l.Type()
	for _, key := range path {
		if key == "" {
			typ = typ.Element()
		} else {
			typ = typ.Field(key)
		}
	}
	var keys []string // from the schema's list type
	if atom, _ := typ.Atom(); atom.List != nil && atom.List.ElementRelationship == schema.Associative {
		keys = atom.List.Keys
	}
	rule := &listRule{known: len(keys) > 0}
	if l.Fields != nil && path[len(path)-1] != "" {
		if strategies, key, known := l.Fields.ListPatch(path); known {
			rule.known = true
			rule.merge = slices.Contains(strategies, "merge")
			if rule.merge && key != "" {
				rule.keys = []string{key}
				if slices.Contains(keys, key) {
					rule.keys = keys
				}
				return rule, nil
			}
		}
	}
	if len(keys) > 0 {
		rule.merge, rule.keys, rule.byType = true, keys, true
	}
	return rule, nil
}

// path returns the keys of the place; they are empty for list elements.
func (p *place) path() []string {
	if p.parent == nil {
		return nil
	}
	return append(p.parent.path(), p.key)
}
