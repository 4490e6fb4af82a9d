package match

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// membership is a value as what it may have as members.
type membership struct {
	text    string
	isText  bool
	members []string
	valid   bool // a value of another type has no members
	listed  bool // it is a list, not a string
	texts   bool // a list of nothing but strings
	// Of a string that is a range, for operators that know ranges.
	inside, outside string
}

func membershipOf(o Operator, value any) membership {
	var m membership
	switch v := value.(type) {
	case []any:
		m.members, m.valid, m.listed = texts(v), true, true
		m.texts = !slices.ContainsFunc(v, func(member any) bool { _, ok := member.(string); return !ok })
	case string:
		m.text, m.isText = v, true
		m.members, m.valid = listOf(v)
		if low, high, outside, ok := pattern.ParseRange(v); ok && !outside && !o.old() {
			m.inside, m.outside = v, low+"!-"+high
		}
	case nil, map[string]any:
	default:
		m.members = []string{fmt.Sprint(value)}
	}
	return m
}

// member evaluates the In family. A value of a type that holds no members
// satisfies neither an operator nor its negation.
func (o Operator) member(clock *limit.Clock, key, value any) bool {
	if _, ok := key.(map[string]any); ok || limit.Value([]any{key, value}) != nil { // before they become strings
		return false
	}
	m := membershipOf(o, value)
	if list, ok := key.([]any); ok {
		return m.holdsList(clock, o, texts(list))
	}
	found, valid := m.contains(clock, fmt.Sprint(key))
	return valid && found != o.negative()
}

func (o Operator) negative() bool { return o == NotIn || o == AnyNotIn || o == AllNotIn }

// old reports whether the operator is a deprecated one, which knows no ranges and, for
// lists as keys, no wildcards.
func (o Operator) old() bool { return o == In || o == NotIn }

func texts(list []any) []string {
	result := make([]string, len(list))
	for i, item := range list {
		result[i] = fmt.Sprint(item)
	}
	return result
}

// contains looks for a single key.
func (m *membership) contains(clock *limit.Clock, key string) (found, valid bool) {
	switch {
	case m.listed:
		return slices.ContainsFunc(m.members, func(member string) bool { return alike(key, member) }), true
	case !m.isText:
		return false, false
	case selector.MatchWildcard(m.text, key):
		return true, true
	case m.inside != "":
		return pattern.Match(clock, m.inside, key, nil), true
	}
	return slices.Contains(m.members, key), m.valid
}

// holdsList looks for several keys.
func (m *membership) holdsList(clock *limit.Clock, o Operator, keys []string) bool {
	within := func(p string) func(string) bool {
		return func(key string) bool { return pattern.Match(clock, p, key, nil) }
	}
	among := func(key string) bool {
		return clock.Steps(len(m.members)) == nil && slices.ContainsFunc(m.members, func(member string) bool {
			return key == member || (!o.old() && alike(key, member))
		})
	}
	switch {
	case m.listed:
		return !(o.old() && !m.texts) && o.decide(keys, among)
	case m.isText && len(keys) == 1 && keys[0] == m.text:
		return !o.negative()
	case m.inside != "" && o == AnyNotIn:
		// A key that is no number is not outside of the range.
		return slices.ContainsFunc(keys, within(m.outside))
	case m.inside != "":
		return o.decide(keys, within(m.inside))
	case m.isText:
		return m.valid && o.decide(keys, among)
	}
	return len(m.members) > 0 && (o == AnyIn || o == AnyNotIn) && o.decide(keys, among)
}

// decide reports whether the keys that are found are those that the operator asks for.
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

// alike takes either side for a wildcard pattern of the other.
func alike(a, b string) bool { return selector.MatchWildcard(a, b) || selector.MatchWildcard(b, a) }

// listOf reads a string that is a JSON list of strings, as ConfigMaps hold them; a
// string that is no JSON is the only member of its list. Other JSON, also a plain
// number, is not valid.
func listOf(text string) (members []string, valid bool) {
	if !json.Valid([]byte(text)) {
		return []string{text}, true
	}
	err := json.Unmarshal([]byte(text), &members)
	return members, err == nil
}
