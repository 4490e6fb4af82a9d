package patching

import (
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
)

// check returns the first unmet condition of a map at a place; nil if all hold. A condition inside a list
// decides only about its element, unless it is global.
func (m *merger) check(patch *node, live any, at *place) *ConditionError {
	if !patch.asks {
		return nil
	}
	if !m.steps(1 + len(patch.fields)) {
		return &ConditionError{}
	}
	object, _ := live.(map[string]any)
	for _, c := range patch.conditions {
		if f := m.checkCondition(c, object, at); f != nil {
			return f
		}
	}
	for _, field := range patch.fields {
		value := object[field.name]
		if !field.asks || field.anchor == pattern.Add && m.present(field, object) {
			continue
		}
		var f *ConditionError
		switch field.kind {
		case isMap:
			f = m.check(field, value, at.field(field.name))
		case isList:
			f = m.checkList(field, value, at.field(field.name))
		}
		if f != nil {
			return f
		}
	}
	return nil
}

func (m *merger) checkCondition(c *node, object map[string]any, at *place) *ConditionError {
	got, present := object[c.name]
	var why pattern.Difference
	if present && (c.patches || pattern.Match(m.clock, asText(c.value), asText(got), &why)) {
		return nil
	}
	if why.Path == "" { // the values themselves, not as strings
		why.Want, why.Got = c.value, got
	}
	return &ConditionError{
		Path: at.field(c.name).String(), Want: c.value, Got: got, Missing: !present, Why: why,
		global: c.anchor == pattern.Global,
	}
}

// checkList fails if an element of a patch has global conditions that no live element meets; an empty list
// meets nothing.
func (m *merger) checkList(patch *node, live any, at *place) *ConditionError {
	list, _ := live.([]any)
	for _, element := range patch.elements {
		if !m.steps(1 + len(list)) {
			return &ConditionError{}
		}
		if element.kind != isMap || !element.global {
			continue
		}
		var global *ConditionError
		passed := false
		visit := func(live any, place *place) {
			if f := m.check(element, live, place); f == nil {
				passed = true
			} else if f.global {
				global = f
			}
		}
		targets := selectTargets(element, list, at.listRule().keys).indices
		if len(targets) == 0 {
			visit(nil, at.element(element.index))
		}
		for _, t := range targets {
			visit(list[t], at.element(t))
		}
		if !passed && global != nil {
			return global
		}
	}
	return nil
}

// targets are the candidate live elements for a patch element with anchors: all, or those with the merge keys
// by which it names one. Kyverno 1.19 overwrites the name in such an element, and so compares it with every
// live element.
type targets struct {
	indices []int
	names   []string // the merge keys by which the patch element names them
}

func selectTargets(element *node, live []any, keys []string) targets {
	t := targets{names: namedBy(element, live, keys)}
	for i, e := range live {
		if sameKeys(element.source, e, t.names, false) {
			t.indices = append(t.indices, i)
		}
	}
	return t
}

// namedBy returns the merge keys by which a patch element with anchors names a live one: a name, if the list
// has names; another key only if no condition of the element selects, else it is a value to write, as in
// `{(name): http, containerPort: 8080}`.
func namedBy(element *node, live []any, keys []string) []string {
	if len(keys) == 0 && slices.ContainsFunc(live, hasName) {
		keys = []string{"name"}
	}
	selects := len(element.conditions) > 0
	return slices.DeleteFunc(slices.Clone(keys), func(k string) bool {
		return element.source[k] == nil || element.hasAnchored(k) || selects && k != "name"
	})
}

func hasName(element any) bool {
	m, ok := element.(map[string]any)
	return ok && m["name"] != nil
}
