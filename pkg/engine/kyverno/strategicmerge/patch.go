package strategicmerge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
)

const (
	directiveKey     = "$patch"
	directiveDelete  = "delete"
	directiveReplace = "replace"
	directiveMerge   = "merge"
)

// Patch is a compiled patch: immutable and safe for concurrent use.
type Patch struct{ root *node }

// node is a value of a patch. The fields below kind depend on it.
type node struct {
	kind   kind
	value  any // as it is written
	anchor pattern.Anchor
	name   string // of the field that it is the value of; empty in a list
	index  int    // in a list

	// Of a map. Conditions whose value is no patch are not among its fields.
	source     map[string]any
	directive  string       // the value of $patch; of a list, that of an element with nothing else
	fields     []*node      // by key
	conditions []*condition // in the order in which they are checked: global ones first

	elements []*node // of a list
	items    []*node // the elements without those that are directives

	// What holds for the node and everything below it.
	anchored bool // has an anchor
	asks     bool // has a condition
	global   bool // has a <()
	adds     bool // has a +()
}

// condition is what a () or a <() asks for.
type condition struct {
	key    string // as it is written
	name   string
	global bool
	want   any
	// pattern is nil where the field only has to be there: its value is a patch.
	pattern *pattern.Pattern
}

// Compile reads a patch. The error is an *AnchorError or a *DirectiveError, or the
// patch nests deeper than engine.DefaultLimits.
func Compile(patch map[string]any) (*Patch, error) {
	root := &node{}
	if err := root.compile(patch, 0); err != nil {
		return nil, err
	}
	return &Patch{root: root}, nil
}

// compile reads a part of a patch into an empty node. The paths of its errors begin
// at the node.
func (n *node) compile(patch any, depth int) error {
	if limit := engine.DefaultLimits().Depth; depth > limit {
		return fmt.Errorf("the patch nests deeper than the limit of %d", limit)
	}
	n.kind, n.value = kindOf(patch), patch
	switch p := patch.(type) {
	case map[string]any:
		n.source = p
		return n.compileMap(p, depth)
	case []any:
		return n.compileList(p, depth)
	}
	return nil
}

func (n *node) compileMap(patch map[string]any, depth int) error {
	n.directive, _ = patch[directiveKey].(string)
	n.fields = make([]*node, 0, len(patch))
	fields := make([]node, len(patch))
	for i, key := range sortedKeys(patch) {
		value := patch[key]
		anchor, name := pattern.ParseKey(key)
		n.anchored = n.anchored || anchor != pattern.None
		n.adds = n.adds || anchor == pattern.Add
		switch anchor {
		case pattern.Equality, pattern.Negation, pattern.Existence:
			return &AnchorError{Path: name, Anchor: anchor.String()}
		case pattern.Condition, pattern.Global:
			n.compileCondition(key, value)
			if !isPatch(value) {
				continue
			}
		case pattern.None:
			if !validDirective(key, value) {
				return &DirectiveError{Key: key, Value: value}
			}
			if key == directiveKey {
				continue
			}
		}
		field := &fields[i]
		field.anchor, field.name = anchor, name
		if err := field.compile(value, depth+1); err != nil {
			return below(name, err)
		}
		n.fields = append(n.fields, field)
		n.inherit(field)
	}
	if len(n.conditions) > 1 {
		slices.SortStableFunc(n.conditions, globalFirst)
	}
	return nil
}

func globalFirst(a, b *condition) int {
	switch {
	case a.global == b.global:
		return 0
	case a.global:
		return -1
	default:
		return 1
	}
}

// compileCondition reads a () or a <(). Scalars are compared as text, as in
// Kyverno's mutate rules: 3 and "3" are the same.
func (n *node) compileCondition(key string, want any) {
	anchor, name := pattern.ParseKey(key)
	c := &condition{key: key, name: name, global: anchor == pattern.Global, want: want}
	n.conditions = append(n.conditions, c)
	n.asks = true
	n.global = n.global || c.global || hasGlobal(want)
	if isPatch(want) {
		return
	}
	if s, ok := text(want); ok {
		want = s
	}
	c.pattern = pattern.Compile(want)
}

func (n *node) compileList(patch []any, depth int) error {
	n.elements = make([]*node, len(patch))
	elements := make([]node, len(patch))
	for i, value := range patch {
		element := &elements[i]
		element.index = i
		if err := element.compile(value, depth+1); err != nil {
			return below(fmt.Sprintf("[%d]", i), err)
		}
		n.elements[i] = element
		n.inherit(element)
		if element.isDirective() {
			n.directive = element.directive
		}
	}
	n.items = n.elements
	if n.directive != "" {
		n.items = slices.DeleteFunc(slices.Clone(n.elements), (*node).isDirective)
	}
	return nil
}

func (n *node) inherit(child *node) {
	n.anchored = n.anchored || child.anchored
	n.asks = n.asks || child.asks
	n.global = n.global || child.global
	n.adds = n.adds || child.adds
}

// validDirective reports whether a key is no directive, or one that is obeyed.
// Kyverno would write the others into the object as fields.
func validDirective(key string, value any) bool {
	switch {
	case key == directiveKey:
		return value == nil || value == directiveDelete || value == directiveReplace || value == directiveMerge
	case key == "$retainKeys":
		return false
	default:
		return !strings.HasPrefix(key, "$setElementOrder/") && !strings.HasPrefix(key, "$deleteFromPrimitiveList/")
	}
}

// isPatch reports whether the value of a condition is a patch rather than a
// pattern: a map with an add anchor of its own. Such a condition only asks that
// the field be there, and then its value is written like any other.
func isPatch(condition any) bool {
	m, ok := condition.(map[string]any)
	if !ok {
		return false
	}
	for key := range m {
		if anchor, _ := pattern.ParseKey(key); anchor == pattern.Add {
			return true
		}
	}
	return false
}

// hasGlobal reports whether there is a <() in the pattern of a condition.
func hasGlobal(condition any) bool {
	switch p := condition.(type) {
	case map[string]any:
		for key, value := range p {
			if anchor, _ := pattern.ParseKey(key); anchor == pattern.Global || hasGlobal(value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(p, hasGlobal)
	}
	return false
}

// isDirective reports whether the node is an element of a list that holds nothing
// but a $patch, which speaks for the whole list.
func (n *node) isDirective() bool { return n.kind == isMap && n.directive != "" && len(n.source) == 1 }

func (n *node) isDeletion() bool { return n.kind == isMap && n.directive == directiveDelete }

func (n *node) isAnchored() bool { return n.anchored }

// isEmpty reports whether the node is {} or [].
func (n *node) isEmpty() bool {
	return n.kind == isMap && len(n.source) == 0 || n.kind == isList && len(n.elements) == 0
}

// deletesFields reports whether a map sets a field of its own to null.
func (n *node) deletesFields() bool {
	return slices.ContainsFunc(n.fields, func(f *node) bool {
		return f.kind == isNull && (f.anchor == pattern.None || f.anchor == pattern.Add)
	})
}

// hasAnchored reports whether a map asks for the key through an anchor as well, so
// that the anchor decides.
func (n *node) hasAnchored(name string) bool {
	return slices.ContainsFunc(n.fields, func(f *node) bool { return f.anchor != pattern.None && f.name == name }) ||
		slices.ContainsFunc(n.conditions, func(c *condition) bool { return c.name == name })
}

// without returns a map without plain fields of these names.
func (n *node) without(names []string) *node {
	drop := func(f *node) bool { return f.anchor == pattern.None && slices.Contains(names, f.name) }
	if !slices.ContainsFunc(n.fields, drop) {
		return n
	}
	out := *n
	out.fields = slices.DeleteFunc(slices.Clone(n.fields), drop)
	return &out
}
