package match

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// rangePattern is a range of Kyverno's patterns: "1-5", "100Mi-1Gi".
var rangePattern = regexp.MustCompile(`^([-+]?\d+(?:\.\d+)?[A-Za-z]*)-([-+]?\d+(?:\.\d+)?[A-Za-z]*)$`)

// member evaluates the In family. A value of a type that holds no members
// satisfies neither an operator nor its negation.
func (o Operator) member(key, value any) bool {
	if list, ok := key.([]any); ok {
		return o.memberOfList(texts(list), value)
	}
	if _, ok := key.(map[string]any); ok {
		return false
	}
	found, valid := o.contains(fmt.Sprint(key), value)
	if !valid {
		return false
	}
	return found != o.negative()
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
func (o Operator) contains(key string, value any) (found, valid bool) {
	switch v := value.(type) {
	case []any:
		return slices.ContainsFunc(texts(v), func(member string) bool { return alike(key, member) }), true
	case string:
		if selector.MatchWildcard(v, key) {
			return true, true
		}
		if !o.old() && rangePattern.MatchString(v) {
			return pattern.Compile(v).Match(key, nil), true
		}
		members, valid := listOf(v)
		return slices.Contains(members, key), valid
	}
	return false, false
}

// memberOfList looks for several keys.
func (o Operator) memberOfList(keys []string, value any) bool {
	switch v := value.(type) {
	case []any:
		if o.old() && slices.ContainsFunc(v, func(member any) bool { _, ok := member.(string); return !ok }) {
			return false
		}
		return o.decide(keys, o.among(texts(v)))
	case string:
		if len(keys) == 1 && keys[0] == v {
			return !o.negative()
		}
		if ends := rangePattern.FindStringSubmatch(v); ends != nil && !o.old() {
			return o.decideRange(keys, ends[1], ends[2])
		}
		members, valid := listOf(v)
		return valid && o.decide(keys, o.among(members))
	case nil, map[string]any:
		return false
	}
	if o == AnyIn || o == AnyNotIn {
		return o.decide(keys, o.among([]string{fmt.Sprint(value)}))
	}
	return false
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

// decideRange asks AnyNotIn for a key outside of the range, which a key that is no
// number is not; the others ask for keys inside.
func (o Operator) decideRange(keys []string, low, high string) bool {
	if o == AnyNotIn {
		outside := pattern.Compile(low + "!-" + high)
		return slices.ContainsFunc(keys, func(key string) bool { return outside.Match(key, nil) })
	}
	inside := pattern.Compile(low + "-" + high)
	return o.decide(keys, func(key string) bool { return inside.Match(key, nil) })
}

func (o Operator) among(members []string) func(string) bool {
	return func(key string) bool {
		return slices.ContainsFunc(members, func(member string) bool {
			return key == member || (!o.old() && alike(key, member))
		})
	}
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
