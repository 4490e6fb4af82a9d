package patching

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

const (
	directiveKey     = "$patch"
	directiveDelete  = "delete"
	directiveReplace = "replace"
	directiveMerge   = "merge"
)

// StrategicMerge is a compiled patch: immutable and safe for concurrent use.
type StrategicMerge struct{ root node }

// node is a value of a patch. The fields below kind depend on its kind.
type node struct {
	value  any    // as written
	key    string // the field's key as written; empty in a list
	name   string // the key without its anchor
	anchor pattern.Anchor
	kind   kind

	// These hold for the node and everything below it.
	anchored bool // has an anchor
	asks     bool // has a condition
	global   bool // has a <()
	adds     bool // has a +()

	// Of a map. Conditions whose value is not a patch are not in fields.
	source     map[string]any // as written
	directive  string         // the value of $patch; for a list, of an element with nothing else
	fields     []*node        // by key
	conditions []*node        // in checking order: global ones first

	elements []*node // of a list, without directives
	index    int     // of an element

	// patches is set for a condition whose field only has to exist, since its value is a patch.
	patches bool
}

// CompileStrategicMerge compiles a patch. The error is about an anchor or a directive, or about nesting
// deeper than limit.Depth.
func CompileStrategicMerge(patch map[string]any) (*StrategicMerge, error) {
	p := &StrategicMerge{root: node{value: patch}}
	if err := p.root.compile(&place{}, 0); err != nil {
		return nil, err
	}
	return p, nil
}

func (n *node) compile(at *place, depth int) error {
	if depth > limit.Depth {
		return fmt.Errorf("the patch nests deeper than the limit of %d", limit.Depth)
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

func (n *node) compileMap(at *place, depth int) error {
	n.directive, _ = n.source[directiveKey].(string)
	children := make([]node, 0, len(n.source))
	for key, value := range n.source {
		anchor, name := pattern.ParseKey(key)
		children = append(children, node{value: value, key: key, anchor: anchor, name: name})
	}
	rank := func(n node) string {
		if n.anchor == pattern.Global {
			return "" // first
		}
		return n.key
	}
	slices.SortFunc(children, func(a, b node) int {
		return cmp.Or(strings.Compare(rank(a), rank(b)), strings.Compare(a.key, b.key))
	})
	n.fields = make([]*node, 0, len(children))
	for i := range children {
		if err := n.compileField(&children[i], at, depth); err != nil {
			return err
		}
	}
	return nil
}

// compileField compiles a field of a map into its fields, its conditions, or both.
//
// () and <() compare scalars as strings, as in Kyverno's mutate rules: 3 and "3" are the same. A meaningless
// anchor is an error: without it, the patch could apply to objects that it was to protect.
func (n *node) compileField(field *node, at *place, depth int) error {
	n.anchored = n.anchored || field.anchor != pattern.None
	n.adds = n.adds || field.anchor == pattern.Add
	switch field.anchor {
	case pattern.Equality, pattern.Negation, pattern.Existence:
		return fmt.Errorf("%s: the anchor %s has a meaning only inside the value of a condition; a patch knows (), <() and +()", at.field(field.name), field.anchor)
	case pattern.Condition, pattern.Global:
		n.conditions, n.asks = append(n.conditions, field), true
		n.global = n.global || field.anchor == pattern.Global || pattern.Has(field.value, pattern.Global)
		if field.patches = isPatch(field.value); !field.patches {
			return nil
		}
	case pattern.None:
		if isDirectiveKey(field.key) {
			return checkDirective(field, at)
		}
	}
	if err := field.compile(at.field(field.name), depth+1); err != nil {
		return err
	}
	n.fields = append(n.fields, field)
	n.inherit(field)
	return nil
}

func (n *node) compileList(patch []any, at *place, depth int) error {
	elements := make([]node, len(patch))
	n.elements = make([]*node, 0, len(patch))
	for i, value := range patch {
		element := &elements[i]
		element.value, element.index = value, i
		if err := element.compile(at.element(i), depth+1); err != nil {
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

func isDirectiveKey(key string) bool {
	return key == directiveKey || key == "$retainKeys" || strings.HasPrefix(key, "$setElementOrder/") ||
		strings.HasPrefix(key, "$deleteFromPrimitiveList/")
}

// checkDirective validates a directive of a map. Kyverno would write an unknown one into the object as a
// field.
func checkDirective(field *node, at *place) error {
	switch {
	case field.key != directiveKey:
		return fmt.Errorf("%s: the directive %s has no meaning in a Kyverno patch", at, field.key)
	case field.value == nil || field.value == directiveDelete || field.value == directiveReplace ||
		field.value == directiveMerge:
		return nil
	}
	return fmt.Errorf("%s: %s is %v; it must be delete, replace or merge", at, directiveKey, field.value)
}

// isPatch reports whether the value of a condition is a patch, not a pattern: a map with an add anchor of its
// own. Such a condition only asks for the field to exist; its value is written like any other.
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

// isDirective reports whether the node is a list element with only a $patch, which applies to the whole list.
func (n *node) isDirective() bool { return n.kind == isMap && n.directive != "" && len(n.source) == 1 }

func (n *node) isDeletion() bool { return n.kind == isMap && n.directive == directiveDelete }

func (n *node) isAnchored() bool { return n.anchored }

func (n *node) isEmpty() bool {
	return n.kind == isMap && len(n.source) == 0 || n.kind == isList && len(n.elements) == 0 && n.directive == ""
}

// deletesFields reports whether a map sets a field of its own to null.
func (n *node) deletesFields() bool {
	return slices.ContainsFunc(n.fields, func(f *node) bool {
		return f.kind == isNull && (f.anchor == pattern.None || f.anchor == pattern.Add)
	})
}

// hasAnchored reports whether a map also has the key with an anchor, which then decides.
func (n *node) hasAnchored(name string) bool {
	anchored := func(f *node) bool { return f.anchor != pattern.None && f.name == name }
	return slices.ContainsFunc(n.fields, anchored) || slices.ContainsFunc(n.conditions, anchored)
}

// without returns a map without the named plain fields.
func (n *node) without(names []string) *node {
	drop := func(f *node) bool { return f.anchor == pattern.None && slices.Contains(names, f.name) }
	if !slices.ContainsFunc(n.fields, drop) {
		return n
	}
	out := *n
	out.fields = slices.DeleteFunc(slices.Clone(n.fields), drop)
	return &out
}

// kind is the type of a value in a merge, as in messages.
type kind string

const (
	isNull   kind = "null"
	isScalar kind = "value"
	isMap    kind = "map"
	isList   kind = "list"
)

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

// asText returns a scalar as a string, and other values unchanged.
func asText(v any) any {
	if s, ok := pattern.Text(v); ok && v != any(s) {
		return s
	}
	return v
}
