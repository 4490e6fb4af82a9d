package patching

import (
	"fmt"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
)

// Reasons why parts of a patch write nothing, for patches that change nothing. They are computed only if
// wanted.

// alreadyThere is the reason for a +() whose field the object has, with another value.
func (m *merger) alreadyThere(field *node, value any, at *place) {
	if m.why != nil && !diff.Equal(value, field.value, diff.Type{}) {
		m.why.Add("%s is there already (%s): +() only adds", at.field(field.name), engine.BriefValue(value))
	}
}

func (m *merger) writesNothing(live any, values []*node, at *place) {
	if m.why == nil || live != nil {
		return
	}
	for _, v := range values {
		if v.isEmpty() {
			m.why.Add("%s: an empty %s in a patch writes nothing", at, v.kind)
		}
	}
}

func (m *merger) nothingToDelete(missing bool, at *place) {
	switch {
	case at.parent == nil:
		m.why.Add("a patch cannot delete the whole object")
	case missing:
		m.why.Add("%s is not there; nothing to remove", at)
	}
}

func (m *merger) withoutKeys(at *place) {
	keys := at.listRule().keys
	m.note("%s: an element without %s is skipped: add it to patch one element, or (%s): \"*\" to patch all of them; Kyverno 1.19 would empty the list",
		at, strings.Join(keys, " or "), keys[0])
	m.why.Add("an element of the patch's %s has no %s, and is skipped", at, strings.Join(keys, " or "))
}

// nothingNamed is the reason for an element to remove.
func (m *merger) nothingNamed(e *node, at *place) {
	m.why.Add("no element of %s has %s; nothing to remove", at, named(e, at.listRule().keys))
}

// missed is the reason for an anchored element that no live element meets.
func (m *merger) missed(e *node, live []any, missed []*ConditionError, targets targets, at *place) {
	switch {
	case m.why == nil:
	case len(live) == 0:
		m.why.Add("%s has no elements", at)
	case len(targets.indices) == 0 && len(targets.names) > 0:
		m.why.Add("no element of %s has %s", at, named(e, targets.names))
	default:
		texts := make([]string, len(missed))
		for i, f := range missed {
			t := targets.indices[i]
			texts[i] = f.text(live[t], at.element(t))
		}
		m.why.Add("no element of %s meets %s: %s", at, conditionsOf(e), engine.Few(texts))
	}
}

func named(e *node, keys []string) string {
	var parts []string
	for _, k := range keys {
		if e.source[k] != nil {
			parts = append(parts, k+" "+engine.BriefValue(e.source[k]))
		}
	}
	return strings.Join(parts, " and ")
}

// conditionsOf lists an element's own conditions as written.
func conditionsOf(e *node) string {
	if len(e.conditions) == 0 {
		return "the conditions"
	}
	parts := make([]string, len(e.conditions))
	for i, c := range e.conditions {
		parts[i] = c.key + ": " + engine.BriefValue(c.value)
	}
	return engine.Few(parts)
}

// text describes an element's value where a condition wants another.
func (e *ConditionError) text(element any, at *place) string {
	name := fmt.Sprintf("element %d", at.index)
	if object, ok := element.(map[string]any); ok {
		if text, isText := object["name"].(string); isText {
			name = text
		}
	}
	path := strings.TrimPrefix(e.Path, at.String()+".")
	switch _, isScalar := pattern.Text(e.Got); {
	case e.Missing:
		return name + " has no " + path
	case isScalar && !strings.Contains(path, "."):
		return name + " has " + path + " " + engine.BriefValue(e.Got)
	}
	return name + ": " + e.Why.Below(path).Text(engine.BriefValue)
}
