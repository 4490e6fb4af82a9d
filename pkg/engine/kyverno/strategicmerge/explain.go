package strategicmerge

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
)

// Explain tells why a patch that Apply has applied changed nothing: what held back
// each part that the object does not hold. Where it holds all of them there is
// nothing to tell.
func Explain(live, patch map[string]any, s engine.Schema, why *engine.Reasons) {
	explainer{why}.fields(live, patch, newRoot(live, s))
}

type explainer struct{ why *engine.Reasons }

func (x explainer) fields(live, patch map[string]any, at *place) {
	if patch[directiveKey] == directiveDelete {
		x.deletion(live, at)
		return
	}
	for _, key := range sortedKeys(patch) {
		anchor, plain := pattern.ParseKey(key)
		value, present := live[plain]
		switch {
		case key == directiveKey:
		case anchor == pattern.Add && present:
			if !diff.Equal(value, patch[key], diff.Type{}) {
				x.why.Add("%s is there already (%s): +() only adds", at.field(plain), x.why.Value(value))
			}
		case (anchor == pattern.Condition || anchor == pattern.Global) && !writes(patch[key]):
		default:
			x.value(value, patch[key], at.field(plain))
		}
	}
}

func (x explainer) value(live, patch any, at *place) {
	switch p := patch.(type) {
	case nil:
		x.deletion(live, at)
	case map[string]any:
		object, _ := live.(map[string]any)
		if len(p) == 0 && live == nil {
			x.why.Add("%s: an empty map in a patch writes nothing", at)
		}
		x.fields(object, p, at)
	case []any:
		list, _ := live.([]any)
		if len(p) == 0 && live == nil {
			x.why.Add("%s: an empty list in a patch writes nothing", at)
		}
		x.list(list, p, at)
	}
}

// deletion tells of something that is to be removed.
func (x explainer) deletion(live any, at *place) {
	switch {
	case at.parent == nil:
		x.why.Add("a patch cannot delete the whole object")
	case isNothing(live):
		x.why.Add("%s is not there, so that there is nothing to remove", at)
	}
}

func isNothing(live any) bool {
	m, isMap := live.(map[string]any)
	return live == nil || isMap && m == nil
}

func (x explainer) list(live, patch []any, at *place) {
	patch, directive := takeDirective(patch)
	rule := at.listRule()
	switch {
	case directive == directiveDelete:
		x.deletion(anyList(live), at)
		return
	case directive == directiveReplace:
		return
	case !rule.merge:
		rule.keys = nil
	}
	for _, element := range patch {
		e, ok := element.(map[string]any)
		switch {
		case !ok:
		case hasAnchors(e):
			x.anchored(e, live, listAt{at, rule.keys})
		case len(rule.keys) > 0:
			x.plain(e, live, listAt{at, rule.keys})
		}
	}
}

func anyList(list []any) any {
	if list == nil {
		return nil
	}
	return list
}

// plain is about an element of a patch without anchors.
func (x explainer) plain(e map[string]any, live []any, at listAt) {
	keys := slices.DeleteFunc(slices.Clone(at.keys), func(k string) bool { return e[k] == nil })
	i := find(e, live, at.keys)
	switch {
	case len(keys) == 0:
		x.why.Add("an element of the patch's %s has no %s, and is left out", at, strings.Join(at.keys, " or "))
	case i >= 0:
		object, _ := live[i].(map[string]any)
		x.fields(object, e, at.element(i))
	case isDeletion(e):
		x.why.Add("no element of %s has %s, so that there is nothing to remove", at, x.named(e, keys))
	}
}

// anchored is about an element of a patch with anchors.
func (x explainer) anchored(e map[string]any, live []any, at listAt) {
	targets, names := targetsOf(e, live, at.keys), namedBy(e, live, at.keys)
	patch := withoutNames(e, names)
	var missed []string
	hit := false
	for _, t := range targets {
		err := check(e, live[t], at.element(t))
		if err == nil {
			hit = true
			object, _ := live[t].(map[string]any)
			x.fields(object, patch, at.element(t))
		} else {
			missed = append(missed, x.missed(err, live[t], at.element(t)))
		}
	}
	switch {
	case hit:
	case len(live) == 0:
		x.why.Add("%s has no elements", at)
	case len(targets) == 0 && len(names) > 0:
		x.why.Add("no element of %s has %s", at, x.named(e, names))
	default:
		x.why.Add("no element of %s meets %s: %s", at, conditionsOf(e), few(missed))
	}
}

func (x explainer) named(e map[string]any, keys []string) string {
	parts := make([]string, len(keys))
	for i, k := range keys {
		parts[i] = k + " " + x.why.Value(e[k])
	}
	return strings.Join(parts, " and ")
}

// conditionsOf are the conditions of an element itself, as the patch has them.
func conditionsOf(e map[string]any) string {
	var parts []string
	for _, key := range sortedKeys(e) {
		if anchor, _ := pattern.ParseKey(key); anchor == pattern.Condition || anchor == pattern.Global {
			parts = append(parts, key+": "+engine.BriefValue(e[key]))
		}
	}
	if len(parts) == 0 {
		return "the conditions"
	}
	return few(parts)
}

// missed says what an element has instead of what a condition wants.
func (x explainer) missed(err error, element any, at *place) string {
	name := fmt.Sprintf("element %d", at.index)
	if m, ok := element.(map[string]any); ok {
		if text, isText := m["name"].(string); isText && !x.why.Hides(text) {
			name = text
		}
	}
	var failed *ConditionError
	if !errors.As(err, &failed) {
		return name
	}
	path := strings.TrimPrefix(failed.Path, at.String()+".")
	switch _, isScalar := text(failed.Got); {
	case failed.Missing:
		return name + " has no " + path
	case isScalar && !strings.Contains(path, "."):
		return name + " has " + path + " " + x.why.Value(failed.Got)
	}
	return name + ": " + pattern.Explain(failed.Want, failed.Got).Below(path).Text(x.why.Value)
}

// few keeps a long enumeration short.
func few(parts []string) string {
	const most = 3
	if more := len(parts) - most; more > 0 {
		return strings.Join(parts[:most], ", ") + fmt.Sprintf(", and %d more", more)
	}
	return strings.Join(parts, ", ")
}
