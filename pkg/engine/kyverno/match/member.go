package match

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// rangePattern is a range of Kyverno's patterns: "1-5", "100Mi-1Gi".
var rangePattern = regexp.MustCompile(`^([-+]?\d+(?:\.\d+)?[A-Za-z]*)-([-+]?\d+(?:\.\d+)?[A-Za-z]*)$`)

// membership is a value as what it may have as members.
type membership struct {
	operator Operator
	text     string
	isText   bool
	members  []string
	valid    bool // a value of another type has no members
	listed   bool // it is a list, not a text
	texts    bool // a list of nothing but texts
	// Of a text that is a range, for operators that know ranges.
	inside, outside *pattern.Pattern
}

func membershipOf(o Operator, value any) membership {
	m := membership{operator: o}
	switch v := value.(type) {
	case []any:
		m.members, m.valid, m.listed = texts(v), true, true
		m.texts = !slices.ContainsFunc(v, func(member any) bool { _, ok := member.(string); return !ok })
	case string:
		m.text, m.isText = v, true
		m.members, m.valid = listOf(v)
		if ends := rangePattern.FindStringSubmatch(v); ends != nil && !o.old() {
			m.inside, m.outside = pattern.Compile(v), pattern.Compile(ends[1]+"!-"+ends[2])
		}
	case nil, map[string]any:
	default:
		m.members = []string{fmt.Sprint(value)}
	}
	return m
}

// member evaluates the In family. A value of a type that holds no members
// satisfies neither an operator nor its negation.
func (o Operator) member(clock *limit.Clock, key, value any) (bool, error) {
	if _, ok := key.(map[string]any); ok {
		return false, nil
	}
	if err := limit.Value([]any{key, value}); err != nil { // before they become texts
		return false, err
	}
	m := membershipOf(o, value)
	if list, ok := key.([]any); ok {
		return m.holdsList(clock, texts(list))
	}
	found, valid, err := m.contains(clock, fmt.Sprint(key))
	if err != nil || !valid {
		return false, err
	}
	return found != o.negative(), nil
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
func (m *membership) contains(clock *limit.Clock, key string) (found, valid bool, err error) {
	switch {
	case m.listed:
		if slices.ContainsFunc(m.members, func(member string) bool { return alike(key, member) }) {
			return true, true, nil
		}
		return false, true, cmp.Or(checkTexts(key), checkTexts(m.members...))
	case !m.isText:
		return false, false, nil
	case selector.MatchWildcard(m.text, key):
		return true, true, nil
	case m.inside != nil:
		found, err = m.inside.Match(clock, key, nil)
		return found, true, err
	}
	return slices.Contains(m.members, key), m.valid, checkTexts(m.text)
}

// holdsList looks for several keys.
func (m *membership) holdsList(clock *limit.Clock, keys []string) (holds bool, err error) {
	o := m.operator
	defer func() {
		if err == nil && holds == o.negative() && !o.old() { // because a key was not found
			err = cmp.Or(checkTexts(keys...), checkTexts(m.members...))
		}
	}()
	within := func(p *pattern.Pattern) func(string) bool {
		return func(key string) bool {
			if err != nil {
				return false
			}
			var ok bool
			ok, err = p.Match(clock, key, nil)
			return ok
		}
	}
	among := func(key string) bool {
		if err == nil {
			err = clock.Steps(len(m.members))
		}
		return err == nil && o.among(key, m.members)
	}
	switch {
	case m.listed:
		return !(o.old() && !m.texts) && o.decide(keys, among), err
	case m.isText && len(keys) == 1 && keys[0] == m.text:
		return !o.negative(), nil
	case m.inside != nil && o == AnyNotIn:
		// A key that is no number is not outside of the range.
		holds = slices.ContainsFunc(keys, within(m.outside))
		return holds, err
	case m.inside != nil:
		holds = o.decide(keys, within(m.inside))
		return holds, err
	case m.isText:
		return m.valid && o.decide(keys, among), err
	}
	return len(m.members) > 0 && (o == AnyIn || o == AnyNotIn) && o.decide(keys, among), err
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
	case AllNotIn:
		return !slices.ContainsFunc(keys, found)
	}
	return false
}

func (o Operator) among(key string, members []string) bool {
	return slices.ContainsFunc(members, func(member string) bool {
		return key == member || (!o.old() && alike(key, member))
	})
}

// alike takes either side for a wildcard pattern of the other.
func alike(a, b string) bool { return selector.MatchWildcard(a, b) || selector.MatchWildcard(b, a) }

// listOf reads a text that is a JSON list of texts, as ConfigMaps hold them; a
// text that is no JSON is the only member of its list. Other JSON, also a plain
// number, is not valid.
func listOf(text string) (members []string, valid bool) {
	if !json.Valid([]byte(text)) {
		return []string{text}, true
	}
	err := json.Unmarshal([]byte(text), &members)
	return members, err == nil
}
