package strategicmerge

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
)

// validate finds what no object could be patched with. The values of
// conditions have a language of their own and are not looked into.
func validate(patch any, at *place, depth int) error {
	if limit := engine.DefaultLimits().Depth; depth > limit {
		return fmt.Errorf("the patch nests deeper than the limit of %d", limit)
	}
	switch p := patch.(type) {
	case map[string]any:
		return validateMap(p, at, depth)
	case []any:
		for i, element := range p {
			if err := validate(element, at.element(i), depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func validateMap(patch map[string]any, at *place, depth int) error {
	for _, key := range sortedKeys(patch) {
		anchor, plain := pattern.ParseKey(key)
		switch anchor {
		case pattern.Equality, pattern.Negation, pattern.Existence:
			return &AnchorError{Path: at.field(plain).String(), Anchor: anchor.String()}
		case pattern.Condition, pattern.Global:
			if !writes(patch[key]) {
				continue
			}
		case pattern.None:
			if !validDirective(key, patch[key]) {
				return &DirectiveError{Path: at.String(), Key: key, Value: patch[key]}
			}
		}
		if err := validate(patch[key], at.field(plain), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// validDirective tells whether a key is no directive, or one that is obeyed.
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

// writes tells whether the value of a condition is a patch rather than a
// pattern: a map with an add anchor of its own. Such a condition only asks that
// the field be there, and then its value is written like any other.
func writes(condition any) bool {
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

// hasAnchors tells whether there is an anchor at any depth of a list element.
func hasAnchors(patch any) bool {
	switch p := patch.(type) {
	case map[string]any:
		for key := range p { // first what is cheap
			if anchor, _ := pattern.ParseKey(key); anchor != pattern.None {
				return true
			}
		}
		for _, value := range p {
			if hasAnchors(value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(p, hasAnchors)
	}
	return false
}

// check tells whether the conditions of a patch hold on what is at a place now.
// The error is a *ConditionError. A condition inside a list decides only over
// its element, unless it is global.
func check(patch map[string]any, live any, at *place) error {
	object, _ := live.(map[string]any)
	keys := sortedKeys(patch)
	for _, want := range [...]pattern.Anchor{pattern.Global, pattern.Condition} {
		for _, key := range keys {
			if anchor, plain := pattern.ParseKey(key); anchor == want {
				if err := checkCondition(patch[key], object, at.field(plain)); err != nil {
					err.global = anchor == pattern.Global
					return err
				}
			}
		}
	}
	for _, key := range keys {
		anchor, plain := pattern.ParseKey(key)
		value, present := object[plain]
		skip := anchor == pattern.Add && present ||
			(anchor == pattern.Condition || anchor == pattern.Global) && !writes(patch[key])
		if skip {
			continue
		}
		if err := checkValue(patch[key], value, at.field(plain)); err != nil {
			return err
		}
	}
	return nil
}

func checkValue(patch, live any, at *place) error {
	switch p := patch.(type) {
	case map[string]any:
		return check(p, live, at)
	case []any:
		return checkList(p, live, at)
	default:
		return nil
	}
}

// checkCondition compares scalars as text, as Kyverno's mutate rules do: 3 and
// "3" are the same.
func checkCondition(want any, object map[string]any, at *place) *ConditionError {
	got, present := object[at.key]
	if !present {
		return &ConditionError{Path: at.String(), Want: want, Missing: true}
	}
	if writes(want) {
		return nil
	}
	p, v := want, got
	if s, ok := text(want); ok {
		p = s
	}
	if s, ok := text(got); ok {
		v = s
	}
	if pattern.Match(p, v) {
		return nil
	}
	return &ConditionError{Path: at.String(), Want: want, Got: got}
}

// checkList fails where global conditions stand in a pattern element and no
// live element meets them; a list without elements meets nothing.
func checkList(patch []any, live any, at *place) error {
	list, _ := live.([]any)
	for i, element := range patch {
		e, ok := element.(map[string]any)
		if !ok || !hasAnchors(e) {
			continue
		}
		var global *ConditionError
		passed := false
		visit := func(live any, place *place) {
			var failed *ConditionError
			if err := check(e, live, place); err == nil {
				passed = true
			} else if errors.As(err, &failed) && failed.global {
				global = failed
			}
		}
		targets := targetsOf(e, list, at.listRule().keys)
		if len(targets) == 0 {
			visit(nil, at.element(i))
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

// targetsOf are the live elements that a pattern element with anchors is held
// against: all, or those that carry the merge keys by which it names one.
// Kyverno 1.19 overwrites the name in such an element, and so holds it against
// every live element.
func targetsOf(element map[string]any, live []any, keys []string) []int {
	keys = namedBy(element, live, keys)
	var targets []int
	for i, e := range live {
		if m, ok := e.(map[string]any); ok && sameKeys(element, m, keys) {
			targets = append(targets, i)
		}
	}
	return targets
}

// namedBy are the merge keys by which a pattern element with anchors names a
// live one. A name always does, if the list has names. Another key does so only
// where no condition of the element's own selects; else it is a value to write,
// as in `{(name): http, containerPort: 8080}`.
func namedBy(element map[string]any, live []any, keys []string) []string {
	if len(keys) == 0 && slices.ContainsFunc(live, hasName) {
		keys = []string{"name"}
	}
	selects := false
	for key := range element {
		anchor, _ := pattern.ParseKey(key)
		selects = selects || anchor == pattern.Condition || anchor == pattern.Global
	}
	return slices.DeleteFunc(slices.Clone(keys), func(k string) bool {
		return element[k] == nil || hasAnchored(element, k) || selects && k != "name"
	})
}

func hasName(element any) bool {
	m, ok := element.(map[string]any)
	return ok && m["name"] != nil
}

// hasAnchored tells whether the element asks for the key through an anchor as
// well, so that the anchor decides.
func hasAnchored(element map[string]any, key string) bool {
	for k := range element {
		if anchor, plain := pattern.ParseKey(k); anchor != pattern.None && plain == key {
			return true
		}
	}
	return false
}
