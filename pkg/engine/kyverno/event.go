package kyverno

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// lintEvent reports whether a rule acts only on an event that existing objects do not go through (a changing
// field, a deletion), and notes it. given are the names with values.
func (r *rule) lintEvent(f *policydecode.Fields, given []string) bool {
	n, event := f.At("match"), deleted
	if !slices.Equal(r.match.Operations(), []engine.Operation{deleted}) {
		n, event = awaited(f.At("preconditions"))
	}
	switch {
	case event == "":
		return false
	case event == deleted && len(r.targets) == 0:
		n.Lint("the rule acts when an object is deleted, and then there is nothing to change: only a rule with targets can")
	case event == deleted:
		n.Note("the rule acts when an object is deleted; --operation=DELETE previews that for each one that exists")
	case slices.Contains(given, "request.oldObject"): // the object before the change
	default:
		n.Note("the rule acts when %s changes: what exists is evaluated unchanged, so nothing is shown; --values that give another %s preview it",
			event, strings.ReplaceAll(event, "request.object", "request.oldObject"))
	}
	return true
}

const deleted = "DELETE"

func onlyDeletion(operations any) bool {
	list, isList := operations.([]any)
	return operations == any(deleted) || isList && len(list) == 1 && list[0] == any(deleted)
}

// awaited returns the condition that waits for an event, and the event; "" if there is none.
func awaited(n policydecode.Node) (policydecode.Node, string) {
	list := slices.Concat(items(n), items(child(n, "all")))
	if one := items(child(n, "any")); len(list) == 0 && len(one) == 1 {
		list = one
	}
	for _, item := range list {
		if event := eventOf(mapping(item.Value)); event != "" {
			return item, event
		}
	}
	return n, ""
}

// eventOf returns the event for which a condition waits: deleted, or a field that changes, such as
// "request.object.data".
func eventOf(condition map[string]any) string {
	key, isText := condition["key"].(string)
	if !isText {
		return ""
	}
	key = expressionIn(key)
	operator := strings.ReplaceAll(stringOrEmpty(condition["operator"]), "Any", "")
	operator = strings.ToLower(strings.TrimSuffix(strings.ReplaceAll(operator, "All", ""), "s"))
	switch operator {
	case "notequal", "notin":
		return changedBetween(key, expressionIn(stringOrEmpty(condition["value"])))
	case "equal", "in":
		if strings.HasPrefix(key, "request.operation") && onlyDeletion(condition["value"]) {
			return deleted
		}
		sign := map[string]string{"true": "!=", "false": "=="}[fmt.Sprint(condition["value"])]
		if left, right, found := strings.Cut(key, sign); found && sign != "" {
			return changedBetween(strings.TrimSpace(left), strings.TrimSpace(right))
		}
	}
	return ""
}

// expressionIn returns the expression of a string that is a single variable.
func expressionIn(text string) string {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "{{"); ok && strings.Count(text, "{{") == 1 {
		return strings.TrimSpace(strings.TrimSuffix(inner, "}}"))
	}
	return text
}

// changedBetween returns the field that is compared with its old value; "" for other operands.
func changedBetween(a, b string) string {
	for _, pair := range [][2]string{{a, b}, {b, a}} {
		if strings.HasPrefix(pair[0], "request.object") &&
			strings.ReplaceAll(pair[1], "request.oldObject", "request.object") == pair[0] && pair[0] != pair[1] {
			return pair[0]
		}
	}
	return ""
}
