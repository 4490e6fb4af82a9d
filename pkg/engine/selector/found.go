package selector

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The bounds of what Found reports.
const (
	mostFound      = 3  // pairs, or keys of others
	mostFoundBytes = 80 // of one value
)

// Found describes what a set of labels has of those that the selector asks for, to go on
// after "wants app=web, ": "has app=db", "has no app, only team=shop", "has none".
func (l *Labels) Found(set map[string]string) string {
	keys := slices.Collect(maps.Keys(l.source.MatchLabels))
	for i := range l.source.MatchExpressions {
		keys = append(keys, l.source.MatchExpressions[i].Key)
	}
	slices.Sort(keys)
	return found(set, slices.Compact(keys), func(key string) string { return key + "=" + shortened(set[key]) })
}

// FoundAnnotations is Labels.Found for annotations and the patterns that they are
// compared with. Values of other annotations are left out: one may hold the whole object.
func FoundAnnotations(set, patterns map[string]string) string {
	return found(set, slices.Sorted(maps.Keys(patterns)), func(key string) string { return key })
}

func found(set map[string]string, keys []string, other func(key string) string) string {
	own := slices.Sorted(maps.Keys(set))
	var have, lack []string
	for _, key := range keys {
		matching := slices.DeleteFunc(slices.Clone(own), func(k string) bool { return !MatchWildcard(key, k) })
		for _, k := range matching {
			have = append(have, k+"="+shortened(set[k]))
		}
		if len(matching) == 0 {
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
	if more := len(parts) - mostFound; more > 0 {
		return strings.Join(parts[:mostFound], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(parts, ", ")
}

func shortened(value string) string {
	if len(value) <= mostFoundBytes {
		return value
	}
	return strings.ToValidUTF8(value[:mostFoundBytes], "") + "..."
}
