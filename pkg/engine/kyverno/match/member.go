package match

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// member evaluates the In family on one or several keys. A value of an unsuitable type satisfies neither an
// operator nor its negation.
func (o Operator) member(clock *limit.Clock, key, value any) bool {
	// before they become strings
	if _, isMap := key.(map[string]any); isMap || limit.Value([]any{key, value}) != nil {
		return false
	}
	list, several := key.([]any)
	if !several {
		list = []any{key}
	}
	keys := texts(list)
	switch v := value.(type) {
	case []any:
		isText := func(member any) bool { _, ok := member.(string); return ok }
		exact := several && o.old()
		return !(exact && slices.ContainsFunc(v, func(member any) bool { return !isText(member) })) &&
			o.decide(keys, finderAmong(clock, texts(v), exact))
	case string:
		return o.memberOfText(clock, keys, several, v)
	case nil, map[string]any:
		return false
	}
	return several && (o == AnyIn || o == AnyNotIn) &&
		o.decide(keys, finderAmong(clock, texts([]any{value}), false))
}

// memberOfText reads a string as itself, a range, or a list of strings as in ConfigMaps.
func (o Operator) memberOfText(clock *limit.Clock, keys []string, several bool, value string) bool {
	if several && len(keys) == 1 && keys[0] == value || !several && selector.MatchWildcard(value, keys[0]) {
		return !o.negative()
	}
	within := func(p string) func(string) bool {
		return func(key string) bool { return pattern.Match(clock, p, key, nil) }
	}
	switch low, high, outside, isRange := pattern.ParseRange(value); {
	case !isRange || outside || o.old():
	case several && o == AnyNotIn: // a key that is not a number is not outside of the range
		return slices.ContainsFunc(keys, within(low+"!-"+high))
	default:
		return o.decide(keys, within(value))
	}
	members, valid := listOf(value)
	return valid && o.decide(keys, finderAmong(clock, members, !several || o.old()))
}

func (o Operator) negative() bool { return o == NotIn || o == AnyNotIn || o == AllNotIn }

// old reports whether the operator is deprecated: no ranges and, for list keys, no wildcards.
func (o Operator) old() bool { return o == In || o == NotIn }

func texts(list []any) []string {
	result := make([]string, len(list))
	for i, item := range list {
		result[i] = fmt.Sprint(item)
	}
	return result
}

// finderAmong returns a function that looks for a key among members; unless exact, either side may be a
// wildcard pattern for the other.
func finderAmong(clock *limit.Clock, members []string, exact bool) func(string) bool {
	return func(key string) bool {
		return clock.Steps(len(members)) == nil && slices.ContainsFunc(members, func(member string) bool {
			return key == member ||
				!exact && (selector.MatchWildcard(key, member) || selector.MatchWildcard(member, key))
		})
	}
}

// decide applies the operator to the found keys.
func (o Operator) decide(keys []string, found func(string) bool) bool {
	missing := func(key string) bool { return !found(key) }
	switch o {
	case AnyIn:
		return slices.ContainsFunc(keys, found)
	case AllIn, In:
		return !slices.ContainsFunc(keys, missing)
	case AnyNotIn, NotIn:
		return slices.ContainsFunc(keys, missing)
	}
	return !slices.ContainsFunc(keys, found) // AllNotIn
}

// listOf reads a JSON list of strings; a string that is not JSON is a list of itself. Other JSON, even a
// plain number, is not valid.
func listOf(text string) (members []string, valid bool) {
	if !json.Valid([]byte(text)) {
		return []string{text}, true
	}
	err := json.Unmarshal([]byte(text), &members)
	return members, err == nil
}
