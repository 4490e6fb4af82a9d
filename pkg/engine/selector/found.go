package selector

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The bounds of what Seen tells.
const (
	mostSeen      = 3  // pairs, or keys of others
	mostSeenBytes = 80 // of one value
)

// Found says briefly what labels have of what the selector asks about, for a reason
// that goes on "wants app=web, ...": "has app=db", "has no app, only team=shop",
// "has none".
func (l *Labels) Found(set map[string]string) string {
	keys := slices.Collect(maps.Keys(l.source.MatchLabels))
	for i := range l.source.MatchExpressions {
		keys = append(keys, l.source.MatchExpressions[i].Key)
	}
	slices.Sort(keys)
	return seen(set, slices.Compact(keys), func(key string) string { return key + "=" + shortened(set[key]) })
}

// FoundAnnotations is what Labels.Seen says, for annotations and the pairs that are asked of
// them. The values of others are not told: one may hold the whole object.
func FoundAnnotations(set, patterns map[string]string) string {
	return seen(set, slices.Sorted(maps.Keys(patterns)), func(key string) string { return key })
}

func seen(set map[string]string, keys []string, other func(key string) string) string {
	own := slices.Sorted(maps.Keys(set))
	var have, lack []string
	for _, key := range keys {
		found := slices.DeleteFunc(slices.Clone(own), func(k string) bool { return !MatchWildcard(key, k) })
		for _, k := range found {
			have = append(have, k+"="+shortened(set[k]))
		}
		if len(found) == 0 {
			lack = append(lack, "no "+key)
		}
	}
	switch {
	case len(own) == 0:
		return "has none"
	case len(have) > 0:
		return "has " + few(append(have, lack...))
	}
	for i, key := range own {
		own[i] = other(key)
	}
	return "has " + few(lack) + ", only " + few(own)
}

func few(parts []string) string {
	if more := len(parts) - mostSeen; more > 0 {
		return strings.Join(parts[:mostSeen], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(parts, ", ")
}

func shortened(value string) string {
	if len(value) <= mostSeenBytes {
		return value
	}
	return strings.ToValidUTF8(value[:mostSeenBytes], "") + "..."
}
