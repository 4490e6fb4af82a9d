package variables

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// Values are the user's replacements for policy inputs. They are immutable once decoded; the zero value has
// none.
type Values struct {
	trees    map[subject]valuesTree
	elements map[subject][]block
	answers  []answer
	entries  map[string]*entry
}

// valuesTree holds values by name; dotted names are nested.
type valuesTree = map[string]any

// subject is the scope of values: a rule or an object of a policy, or everything.
type subject struct{ policy, rule, object string }

// block holds values by variable for the elements of one foreach.
type block map[string][]any

// Add reads a Values document, which overrides earlier ones. Errors go to the node's report.
func (v *Values) Add(n policydecode.Node) {
	if v.trees == nil {
		*v = Values{trees: map[subject]valuesTree{}, elements: map[subject][]block{}, entries: map[string]*entry{}}
	}
	f := n.Fields()
	f.Accept("apiVersion", "kind", "metadata")
	v.decode(subject{}, f.At("globalValues"))
	for _, n := range f.At("policies").List() {
		v.addPolicy(n)
	}
	v.addAnswers(f.At("apiCallResponses"))
	v.addEntries(f.At("globalContextEntries"))
	namespaces(f)
	for _, n := range f.At("subresources").List() {
		n.Lint("has no effect: objects of manifests are never taken for subresources of others")
	}
	if f.Has("variables") {
		f.At("variables").Lint("has no effect on mutate rules")
	}
	f.Done()
}

func (v *Values) addPolicy(n policydecode.Node) {
	f := n.Fields()
	policy := f.At("name").Required()
	for _, n := range f.At("resources").List() {
		object := n.Fields()
		v.decode(subject{policy: policy, object: object.At("name").Required()}, object.At("values"))
		object.Done()
	}
	for _, n := range f.At("rules").List() {
		rule := n.Fields()
		name := subject{policy: policy, rule: rule.At("name").Required()}
		v.decode(name, rule.At("values"))
		v.elements[name] = append(v.elements[name], decodeBlocks(rule.At("foreachValues"))...)
		rule.Done()
	}
	f.Done()
}

// decode reads values by dotted name, in name order, and overlays earlier ones.
func (v *Values) decode(of subject, n policydecode.Node) {
	tree := v.trees[of]
	if tree == nil {
		tree = valuesTree{}
		v.trees[of] = tree
	}
	f := n.Fields()
	for _, name := range slices.Sorted(maps.Keys(f.Values)) {
		if isName(f.At(name), name) {
			layOver(nested(split(name), f.Values[name]), tree)
		}
	}
}

// layOver overlays values on a tree, in place. It copies every mapping, so that the tree owns its own.
func layOver(above, tree valuesTree) {
	for name, value := range above {
		mapping, isMap := value.(map[string]any)
		if !isMap {
			tree[name] = value
			continue
		}
		below, both := tree[name].(map[string]any)
		if !both {
			below = make(map[string]any, len(mapping))
			tree[name] = below
		}
		layOver(mapping, below)
	}
}

// isName validates a variable's name, each part of which is a level of nesting, and reports errors.
func isName(n policydecode.Node, name string) bool {
	parts := split(name)
	switch {
	case slices.Contains(parts, ""):
		n.Fail("is not a variable name: a part between dots is empty")
	case len(parts) > limit.Depth:
		n.Fail("is not a variable name: it has more than %d parts", limit.Depth)
	default:
		return true
	}
	return false
}

func nested(path []string, value any) valuesTree {
	for _, part := range slices.Backward(path[1:]) {
		value = valuesTree{part: value}
	}
	return valuesTree{path[0]: value}
}

// split splits a dotted name; a part in double quotes may have dots (pkg/engine/context/context.go,
// AddVariable).
func split(name string) []string {
	var parts []string
	var part strings.Builder
	quoted := false
	for _, r := range name {
		switch {
		case r == '"':
			quoted = !quoted
		case r == '.' && !quoted:
			parts = append(parts, part.String())
			part.Reset()
		default:
			part.WriteRune(r)
		}
	}
	return append(parts, part.String())
}

// decodeBlocks reads the values for elements: one mapping for every foreach of the rule, or a list with one
// for each.
func decodeBlocks(n policydecode.Node) []block {
	blocks := []policydecode.Node{n}
	if _, several := n.Value.([]any); several {
		blocks = n.List()
	}
	var out []block
	for _, n := range blocks {
		f := n.Fields()
		b := block{}
		for _, name := range slices.Sorted(maps.Keys(f.Values)) {
			if !isName(f.At(name), name) {
				continue
			}
			for _, value := range f.At(name).List() {
				b[name] = append(b[name], value.Value)
			}
		}
		if len(b) > 0 || len(blocks) > 1 {
			out = append(out, b)
		}
	}
	return out
}

// Given returns the values for one rule, by its name in the policy, on one object, keyed by the first parts
// of their names. Values of the rule precede those for the object, and these the global ones. They must not
// be modified.
func (v *Values) Given(policy, rule, object string) map[string]any {
	given := v.trees[subject{}]
	for _, of := range []subject{{policy: policy, object: object}, {policy: policy, rule: rule}} {
		if above := v.trees[of]; len(above) > 0 {
			given = over(given, above)
		}
	}
	return given
}

// Element returns the values for one element of a foreach, where index counts the outermost foreach entries
// of the rule; it may be nil.
func (v *Values) Element(policy, rule string, foreach, element int) map[string]any {
	blocks := v.elements[subject{policy: policy, rule: rule}]
	switch {
	case len(blocks) == 1:
		foreach = 0
	case foreach >= len(blocks):
		return nil
	}
	out := valuesTree{}
	for _, name := range slices.Sorted(maps.Keys(blocks[foreach])) {
		if list := blocks[foreach][name]; element < len(list) {
			layOver(nested(split(name), list[element]), out)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// GivesElements reports whether elements of some foreach of a rule have values whose names start with a name.
func (v *Values) GivesElements(policy, rule, name string) bool {
	for _, b := range v.elements[subject{policy: policy, rule: rule}] {
		for dotted := range b {
			if split(dotted)[0] == name {
				return true
			}
		}
	}
	return false
}

// Operation returns the operation of the request on an object; empty if not given.
func (v *Values) Operation(policy, object string) string {
	request, _ := v.Given(policy, "", object)["request"].(valuesTree)
	operation, _ := request["operation"].(string)
	return operation
}

// Over overlays a value on a base: mappings are merged, other values replaced. Neither is modified.
func Over(base, value any) any {
	below, isMap := base.(map[string]any)
	above, both := value.(map[string]any)
	if !isMap || !both {
		return value
	}
	return over(below, above)
}

func over(below, above valuesTree) valuesTree {
	out := valuesTree{}
	layOver(below, out)
	layOver(above, out)
	return out
}

// ValuesNamespaces returns the Namespaces that a Values document describes, by name. Add reports its errors.
func ValuesNamespaces(document *unstructured.Unstructured) []*unstructured.Unstructured {
	return namespaces(policydecode.Node{Report: &policydecode.Report{}, Value: document.Object}.Fields())
}

// namespaces reads the labels under namespaceSelector, and whole objects under namespaces, which come first.
func namespaces(f *policydecode.Fields) []*unstructured.Unstructured {
	found := map[string]valuesTree{}
	for _, n := range f.At("namespaceSelector").List() {
		one := n.Fields()
		labels := valuesTree{}
		for name, value := range one.At("labels").TextMap() {
			labels[name] = value
		}
		if name := one.At("name").Required(); name != "" {
			found[name] = valuesTree{"name": name, "labels": labels}
		}
		one.Done()
	}
	for _, n := range f.At("namespaces").List() {
		one := n.Fields()
		metadata := one.At("metadata").Fields()
		if name := metadata.At("name").Required(); name != "" {
			found[name] = metadata.Values
		}
	}
	var out []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, &unstructured.Unstructured{Object: valuesTree{
			"apiVersion": "v1", "kind": "Namespace", "metadata": found[name],
		}})
	}
	return out
}
