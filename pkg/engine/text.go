package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The bounds of messages.
const (
	mostNamed = 3
	mostBytes = 80 // of one value
)

// Few returns the first of many names: "a, b, c and 2 more".
func Few[T any](all []T) string { return FewOf(all, len(all)) }

// FewOf is Few for n names; only the first ones need be given.
func FewOf[T any](first []T, n int) string {
	var names []string
	for _, one := range first[:min(len(first), mostNamed)] {
		names = append(names, fmt.Sprint(one))
	}
	text := strings.Join(names, ", ")
	if more := n - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Cut ends a string that was cut.
const Cut = "..."

// Shorten returns the first bytes of a longer string, and Cut.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + Cut
}

// FirstWords returns the first whole words of a string, up to so many bytes, and Cut if there are more.
func FirstWords(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:max(0, strings.LastIndexAny(text[:most], space))] + " " + Cut
}

// MaxMessage limits, in bytes, a message that may quote a policy or an object: about a policy, or why a rule
// failed, was denied or is unsupported.
const MaxMessage = 8 << 10

// Ends returns the first and last whole words of a string, up to so many bytes, with Cut between them: a
// message quotes its subject first and ends with the problem.
func Ends(text string, most int) string {
	if len(text) <= most {
		return text
	}
	tail := text[len(text)-most/4:]
	start := strings.IndexAny(tail, space)
	if start < 0 {
		start = len(tail)
	}
	return FirstWords(text, most-most/4) + tail[start:]
}

const space = " \t\r\n"

// BriefValue returns a short form of a value: strings quoted and shortened, maps and lists by size. It hides
// nothing.
func BriefValue(value any) string {
	switch v := value.(type) {
	case string:
		if len(v) > mostBytes {
			return strconv.Quote(strings.ToValidUTF8(v[:mostBytes], "")) + "..."
		}
		return strconv.Quote(v)
	case map[string]any:
		return fmt.Sprintf("a map of %d", len(v))
	case []any:
		return fmt.Sprintf("a list of %d", len(v))
	}
	raw, err := json.Marshal(value)
	if err != nil { // not a JSON value
		return fmt.Sprint(value)
	}
	return string(raw)
}

// Distinct returns the distinct elements of a list in their order. It overwrites the list.
func Distinct[T comparable](list []T) []T {
	seen := make(map[T]bool, len(list))
	return slices.DeleteFunc(list, func(one T) bool {
		known := seen[one]
		seen[one] = true
		return known
	})
}
