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

// nodeType is the type that a mutator expects at a place. typeUnknown is compatible with all.
type nodeType string

// The types that locations imply.
const (
	typeUnknown nodeType = ""
	typeObject  nodeType = "an object"
	typeList    nodeType = "a list"
	typeSet     nodeType = "a set"
	typeString  nodeType = "a string"
)

// schemaClaim is a mutator's assumption about the schema of its kinds.
type schemaClaim struct {
	ID       string // in Gatekeeper's notation
	Name     string // the short name
	Types    []binding
	Location location
	// Terminal is the type of the value at the end of the location. With MustTerminate, nothing may be below it.
	Terminal      nodeType
	MustTerminate bool
}

type binding struct {
	schema.GroupVersionKind
	Operation engine.Operation
}

// conflictError is a place about which mutators disagree. Gatekeeper disables them all, for all their kinds.
type conflictError struct {
	Parties []string // sorted IDs
	Kind    schema.GroupVersionKind
	Node    string // the place
	Reason  string
}

// Error is Gatekeeper's message, followed by the place and the reason.
func (e *conflictError) Error() string {
	return fmt.Sprintf("the following mutators have conflicting schemas: [%s]: at %s of %s: %s; none of them is enforced until only one side is left",
		few(e.Parties, ","), e.Node, strings.TrimPrefix(e.Kind.Group+"/"+e.Kind.Version+"/"+e.Kind.Kind, "/"), e.Reason)
}

// findConflicts returns the first conflict of each mutator that has any, by kind and place
// (pkg/mutation/schema in Gatekeeper). Values, and match criteria other than kinds, do not count.
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

// tree has the claims about one kind, by place.
type tree struct{ places map[string]*place }

type place struct {
	types     map[nodeType]ids // its claimed types
	keys      map[string]ids   // its claimed list keys
	terminate ids              // claims that nothing is below
	extend    ids              // claims that something is below
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
		case listNode: // the intended element does not matter
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

// conflicts lists the places with conflicting claims, in order.
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

// sides describes conflicting claims in a format for each, and returns all parties; none if they agree.
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

const mostParties = 20

func few(list []string, separator string) string {
	if more := len(list) - mostParties; more > 0 {
		return strings.Join(list[:mostParties], separator) + fmt.Sprintf("%s%d more", separator, more)
	}
	return strings.Join(list, separator)
}
