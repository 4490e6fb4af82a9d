package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The bounds of what messages show.
const (
	mostNamed = 3
	mostBytes = 80 // of one value
)

// Few returns the first of many names: "a, b, c and 2 more".
func Few[T any](all []T) string { return FewOf(all, len(all)) }

// FewOf is Few of n names, of which only the first need be given.
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

// Cut stands at the end of a string that was cut.
const Cut = "..."

// Shorten returns the first bytes of a string that has more than that, and Cut.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + Cut
}

// FirstWords returns the words that begin a string, as many as take so many bytes, and Cut where there are
// more. No word is split.
func FirstWords(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:max(0, strings.LastIndexAny(text[:most], space))] + " " + Cut
}

// MaxMessage is how many bytes a message has that may quote what a policy or an object says: one about a
// policy, or why a rule failed, was denied or is not supported.
const MaxMessage = 8 << 10

// Ends returns the words that begin and end a string, as many as take so many bytes, with Cut in the place of
// those between them. It is for messages, which quote what they are about and then say what is wrong with it.
// No word is split.
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

// space is what separates words.
const space = " \t\r\n"

// BriefValue returns a short form of a value: strings in quotes and shortened, maps and
// lists by their size. It hides nothing.
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
	if err != nil { // no value of JSON
		return fmt.Sprint(value)
	}
	return string(raw)
}

// Distinct returns the elements of a list in their order, each once. It writes to the list.
func Distinct[T comparable](list []T) []T {
	seen := make(map[T]bool, len(list))
	return slices.DeleteFunc(list, func(one T) bool {
		known := seen[one]
		seen[one] = true
		return known
	})
}
