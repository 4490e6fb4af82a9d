package selector

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MatchWildcard reports whether pattern matches all of text: `*` matches any run of characters, `/` included,
// and `?` exactly one character. There is no escape. An empty pattern matches only the empty string. A
// pattern that CheckWildcard refuses matches nothing.
func MatchWildcard(pattern, text string) bool {
	if !HasWildcard(pattern) {
		return pattern == text
	}
	if CheckWildcard(pattern) != nil {
		return false
	}
	runeSize := func(at int) int {
		_, size := utf8.DecodeRuneInString(text[at:])
		return size
	}
	// after the last * of the pattern, and where its match in text ends
	p, t, behind, from := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			p++
			behind, from = p, t
		case p < len(pattern) && pattern[p] == '?':
			p, t = p+1, t+runeSize(t)
		case p < len(pattern) && pattern[p] == text[t]:
			p, t = p+1, t+1
		case behind >= 0:
			from += runeSize(from)
			p, t = behind, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// maxSegment limits the characters between a `*` and the next one: they are compared at each place of a
// string.
const maxSegment = 1000

// CheckWildcard returns an error for a pattern that takes too long to match.
func CheckWildcard(pattern string) error {
	_, behind, _ := strings.Cut(pattern, "*")
	for segment := range strings.SplitSeq(behind, "*") {
		if len(segment) > maxSegment && utf8.RuneCountInString(segment) > maxSegment {
			return fmt.Errorf("is no pattern: more than %d characters stand behind a *, without another one", maxSegment)
		}
	}
	return nil
}

// HasWildcard reports whether a string contains `*` or `?`.
func HasWildcard(text string) bool { return strings.ContainsAny(text, "*?") }
