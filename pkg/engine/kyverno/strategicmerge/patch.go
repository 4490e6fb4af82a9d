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
type Patch struct{ root node }

// node is a value of a patch. The fields below kind depend on it.
type node struct {
	value  any    // as it is written
	key    string // of the field that it is the value of, as it is written; empty in a list
	name   string // the key without its anchor
	anchor pattern.Anchor
	kind   kind

	// What holds for the node and everything below it.
	anchored bool // has an anchor
	asks     bool // has a condition
	global   bool // has a <()
	adds     bool // has a +()

	// Of a map. Conditions whose value is no patch are not among its fields.
	source     map[string]any // as it is written
	directive  string         // the value of $patch; of a list, that of an element with nothing else
	fields     []*node        // by key
	conditions []*node        // in the order in which they are checked: global ones first

	elements []*node // of a list, without those that are directives
	index    int     // of an element

	// patches is set for a condition whose field only has to be there, since its value is a patch.
	patches bool
}

// Compile reads a patch. The error is about an anchor or a directive, or the
// patch nests deeper than engine.DefaultLimits.
func Compile(patch map[string]any) (*Patch, error) {
	p := &Patch{root: node{value: patch}}
	if err := p.root.compile("", 0); err != nil {
		return nil, err
	}
	return p, nil
}

// compile reads the value of a node at a path.
func (n *node) compile(at string, depth int) error {
	if limit := engine.DefaultLimits().Depth; depth > limit {
		return fmt.Errorf("the patch nests deeper than the limit of %d", limit)
	}
	n.kind = kindOf(n.value)
	switch value := n.value.(type) {
	case map[string]any:
		n.source = value
		return n.compileMap(at, depth)
	case []any:
		return n.compileList(value, at, depth)
	}
	return nil
}

func (n *node) compileMap(at string, depth int) error {
	n.directive, _ = n.source[directiveKey].(string)
	children := make([]node, 0, len(n.source))
	for key, value := range n.source {
		anchor, name := pattern.ParseKey(key)
		children = append(children, node{value: value, key: key, anchor: anchor, name: name})
	}
	slices.SortFunc(children, func(a, b node) int { return strings.Compare(a.key, b.key) })
	n.fields = make([]*node, 0, len(children))
	for i := range children {
		if err := n.compileField(&children[i], at, depth); err != nil {
			return err
		}
	}
	if len(n.conditions) > 1 {
		slices.SortStableFunc(n.conditions, globalFirst)
	}
	return nil
}

// compileField reads a field of a map, and makes it one of its fields, its conditions,
// or both.
func (n *node) compileField(field *node, at string, depth int) error {
	n.anchored = n.anchored || field.anchor != pattern.None
	n.adds = n.adds || field.anchor == pattern.Add
	switch field.anchor {
	case pattern.Equality, pattern.Negation, pattern.Existence:
		return anchorError(joinPath(at, field.name), field.anchor)
	case pattern.Condition, pattern.Global:
		n.compileCondition(field)
		if !field.patches {
			return nil
		}
	case pattern.None:
		if !validDirective(field.key, field.value) {
			return directiveError(at, field.key, field.value)
		}
		if field.key == directiveKey {
			return nil
		}
	}
	if err := field.compile(joinPath(at, field.name), depth+1); err != nil {
		return err
	}
	n.fields = append(n.fields, field)
	n.inherit(field)
	return nil
}

func globalFirst(a, b *node) int {
	switch {
	case a.anchor == b.anchor:
		return 0
	case a.anchor == pattern.Global:
		return -1
	default:
		return 1
	}
}

// compileCondition reads a () or a <(). Scalars are compared as text, as in
// Kyverno's mutate rules: 3 and "3" are the same.
func (n *node) compileCondition(c *node) {
	n.conditions = append(n.conditions, c)
	n.asks = true
	n.global = n.global || c.anchor == pattern.Global || pattern.HasGlobal(c.value)
	c.patches = isPatch(c.value)
}

func (n *node) compileList(patch []any, at string, depth int) error {
	elements := make([]node, len(patch))
	n.elements = make([]*node, 0, len(patch))
	for i, value := range patch {
		element := &elements[i]
		element.value, element.index = value, i
		if err := element.compile(fmt.Sprintf("%s[%d]", at, i), depth+1); err != nil {
			return err
		}
		if element.isDirective() {
			n.directive = element.directive
			continue
		}
		n.elements = append(n.elements, element)
		n.inherit(element)
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

// isDirective reports whether the node is an element of a list that holds nothing
// but a $patch, which speaks for the whole list.
func (n *node) isDirective() bool { return n.kind == isMap && n.directive != "" && len(n.source) == 1 }

func (n *node) isDeletion() bool { return n.kind == isMap && n.directive == directiveDelete }

func (n *node) isAnchored() bool { return n.anchored }

// isEmpty reports whether the node is {} or [].
func (n *node) isEmpty() bool {
	return n.kind == isMap && len(n.source) == 0 || n.kind == isList && len(n.elements) == 0 && n.directive == ""
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
	anchored := func(f *node) bool { return f.anchor != pattern.None && f.name == name }
	return slices.ContainsFunc(n.fields, anchored) || slices.ContainsFunc(n.conditions, anchored)
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

// kind is what a value is to a merge.
type kind byte

const (
	isNull kind = iota
	isScalar
	isMap
	isList
)

// String is how messages call it.
func (k kind) String() string {
	return [...]string{"null", "value", "map", "list"}[k]
}

func kindOf(v any) kind {
	switch v.(type) {
	case nil:
		return isNull
	case map[string]any:
		return isMap
	case []any:
		return isList
	default:
		return isScalar
	}
}

// asText returns the text of a scalar, and any other value itself.
func asText(v any) any {
	if s, ok := pattern.Text(v); ok {
		return s
	}
	return v
}
