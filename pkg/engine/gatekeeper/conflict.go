package gatekeeper

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// nodeType is the type that a mutator takes a place for. typeUnknown is compatible with all.
type nodeType string

// The types that locations imply.
const (
	typeUnknown nodeType = ""
	typeObject  nodeType = "an object"
	typeList    nodeType = "a list"
	typeSet     nodeType = "a set"
	typeString  nodeType = "a string"
)

// schemaClaim is what one mutator implies about the kinds that it applies to.
type schemaClaim struct {
	ID       string // as Gatekeeper prints it
	Name     string // in short
	Types    []binding
	Location location
	// Terminal is the type of what stands at the end of the location. Where
	// MustTerminate holds, nothing can stand below it.
	Terminal      nodeType
	MustTerminate bool
}

// binding is a kind, and an operation on its objects.
type binding struct {
	schema.GroupVersionKind
	Operation engine.Operation
}

// conflictError is a place about which mutators disagree. Gatekeeper disables them all,
// for all their kinds.
type conflictError struct {
	Parties []string // IDs, in order
	Kind    schema.GroupVersionKind
	Node    string // the place
	Reason  string
}

// Error is Gatekeeper's text, followed by what it leaves out: where, and why.
func (e *conflictError) Error() string {
	return fmt.Sprintf("the following mutators have conflicting schemas: [%s]: at %s of %s: %s; none of them is enforced until only one side is left",
		few(e.Parties, ","), e.Node, strings.TrimPrefix(e.Kind.Group+"/"+e.Kind.Version+"/"+e.Kind.Kind, "/"), e.Reason)
}

// findConflicts returns, for each mutator that has conflicts, the first one, by kind and
// place (pkg/mutation/schema in Gatekeeper). Values, and what the mutators match
// besides their kinds, do not count.
func findConflicts(claims []schemaClaim) map[string]*conflictError {
	trees := map[binding]*tree{}
	for _, c := range claims {
		for _, b := range c.Types {
			if trees[b] == nil {
				trees[b] = &tree{places: map[string]*place{}}
			}
			trees[b].add(c)
		}
	}
	found := map[string]*conflictError{}
	order := func(a, b binding) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Operation, b.Operation))
	}
	for _, b := range slices.SortedFunc(maps.Keys(trees), order) {
		for _, e := range trees[b].conflicts(b.GroupVersionKind) {
			for _, id := range e.Parties {
				if found[id] == nil {
					found[id] = e
				}
			}
		}
	}
	return found
}

// tree is what is claimed about one kind, by place.
type tree struct{ places map[string]*place }

// place collects the claims about one place.
type place struct {
	types     map[nodeType]ids // what it is taken for
	keys      map[string]ids   // as a list: its keys
	terminate ids              // for whom nothing is below
	extend    ids              // for whom something is below
}

type ids map[string]string // short names by ID

func add[K comparable](m map[K]ids, k K, c schemaClaim) map[K]ids {
	if m == nil {
		m = map[K]ids{}
	}
	if m[k] == nil {
		m[k] = ids{}
	}
	m[k][c.ID] = c.Name
	return m
}

func (t *tree) add(c schemaClaim) {
	name := ""
	for i, node := range c.Location {
		switch n := node.(type) {
		case fieldNode:
			name = strings.TrimPrefix(name+"."+n.String(), ".")
		case listNode: // which element is meant does not matter
			name += listNode{Key: n.Key}.String()
		}
		p := t.places[name]
		if p == nil {
			p = &place{terminate: ids{}, extend: ids{}}
			t.places[name] = p
		}
		if i == len(c.Location)-1 {
			if c.Terminal != typeUnknown {
				p.types = add(p.types, c.Terminal, c)
			}
			if c.MustTerminate {
				p.terminate[c.ID] = c.Name
			}
			continue
		}
		p.extend[c.ID] = c.Name
		if list, ok := c.Location[i+1].(listNode); ok {
			p.types = add(p.types, typeList, c)
			p.keys = add(p.keys, list.Key, c)
		} else {
			p.types = add(p.types, typeObject, c)
		}
	}
}

// conflicts lists the places about which there is no agreement, in order.
func (t *tree) conflicts(kind schema.GroupVersionKind) []*conflictError {
	var out []*conflictError
	for _, name := range slices.Sorted(maps.Keys(t.places)) {
		p := t.places[name]
		conflict := func(reason string, parties ids) {
			out = append(out,
				&conflictError{Parties: slices.Sorted(maps.Keys(parties)), Kind: kind, Node: name, Reason: reason})
		}
		if said, parties := sides(p.types, "%s for %s"); len(parties) > 1 {
			conflict("it is "+said, parties)
		}
		if said, parties := sides(p.keys, "%q for %s"); len(parties) > 1 {
			conflict("the key of the list is "+said, parties)
		}
		both := maps.Clone(p.terminate)
		maps.Copy(both, p.extend)
		if len(p.terminate) > 0 && len(p.extend) > 0 && len(both) > 1 {
			conflict(fmt.Sprintf("nothing stands below it for %s, and something does for %s", listIDs(p.terminate), listIDs(p.extend)), both)
		}
	}
	return out
}

// sides says who takes a place for what, in a format for both, and returns all of them, if they do not agree.
func sides[K cmp.Ordered](claims map[K]ids, format string) (said string, parties ids) {
	if len(claims) < 2 {
		return "", nil
	}
	var parts []string
	parties = ids{}
	for _, claim := range slices.Sorted(maps.Keys(claims)) {
		maps.Copy(parties, claims[claim])
		parts = append(parts, fmt.Sprintf(format, claim, listIDs(claims[claim])))
	}
	return strings.Join(parts, ", "), parties
}

func listIDs(set ids) string { return few(slices.Sorted(maps.Values(set)), " and ") }

// mostParties bounds how many mutators a message lists.
const mostParties = 20

func few(list []string, separator string) string {
	if more := len(list) - mostParties; more > 0 {
		return strings.Join(list[:mostParties], separator) + fmt.Sprintf("%s%d more", separator, more)
	}
	return strings.Join(list, separator)
}
